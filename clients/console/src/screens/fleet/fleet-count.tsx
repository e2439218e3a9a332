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

/** How many errors doctor finds, or else warnings: the worst is its first. */
export default function FleetCount(): ReactNode {
  const { findings = [] } = useDiagnosis().data ?? {};
  const worst = findings[0]?.severity ?? Finding_Severity.INFO;
  const count = formatCount(findings.filter(({ severity }) => severity === worst).length);
  const tone = worst === Finding_Severity.ERROR ? "bad" : "attention";
  return worst > Finding_Severity.INFO && <StateMark tone={tone} word={count} />;
}
