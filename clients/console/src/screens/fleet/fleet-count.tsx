import { useQuery } from "@connectrpc/connect-query";
import { Finding_Severity, OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { ReactNode } from "react";
import { formatCount } from "../../format/quantity.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { useLiveInterval } from "../../shell/live.ts";

/** Long enough that going to another screen examines nothing again. */
const FRESH_MS = 60_000;

/** Examines the database, Redis and the replicas, which takes seconds when a part does not answer. It changes nothing. */
export function useDiagnosis() {
  const refetchInterval = useLiveInterval(FRESH_MS);
  return useQuery(OperatorService.method.diagnose, {}, { staleTime: FRESH_MS, refetchInterval });
}

/** How many errors and warnings doctor finds, the worst of which is its first. */
export default function FleetCount(): ReactNode {
  const { findings = [] } = useDiagnosis().data ?? {};
  const problems = findings.filter(({ severity }) => severity > Finding_Severity.INFO);
  const tone = problems[0]?.severity === Finding_Severity.ERROR ? "bad" : "attention";
  return problems.length > 0 && <StateMark tone={tone} word={formatCount(problems.length)} />;
}
