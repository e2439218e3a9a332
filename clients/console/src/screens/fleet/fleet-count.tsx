import { useQuery } from "@connectrpc/connect-query";
import { type Finding, Finding_Severity, OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { ReactNode } from "react";
import { formatCount, formatNoun } from "../../format/quantity.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { useLiveInterval } from "../../shell/live.ts";

/** Long enough that going to another screen examines nothing again. */
const FRESH_MS = 60_000;

/** Examines the database, Redis and the replicas, which takes seconds when a part does not answer. It changes nothing. */
export function useDiagnosis() {
  const refetchInterval = useLiveInterval(FRESH_MS);
  return useQuery(OperatorService.method.diagnose, {}, { staleTime: FRESH_MS, refetchInterval });
}

/** Returns how many errors doctor finds, or else warnings: the worst come first. Undefined: neither, or it has not answered. */
export function worstOf(findings: readonly Finding[] = []) {
  const worst = findings[0]?.severity ?? Finding_Severity.INFO;
  if (worst <= Finding_Severity.INFO) return undefined;
  const count = findings.filter(({ severity }) => severity === worst).length;
  const [tone, name] =
    worst === Finding_Severity.ERROR ? (["bad", "error"] as const) : (["attention", "warning"] as const);
  return { tone, count, word: formatNoun(count, name, `${name}s`) };
}

/** The number of the worst findings, for the navigation. */
export default function FleetCount(): ReactNode {
  const worst = worstOf(useDiagnosis().data?.findings);
  return worst && <StateMark tone={worst.tone} word={formatCount(worst.count)} />;
}
