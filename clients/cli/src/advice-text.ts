import type { GetRetentionAdviceResponse } from "@onceward/client/proto";
import { formatSize } from "#words/bytes";
import { formatDurationMs } from "#words/durations";
import { describeInsufficientData } from "#words/insufficient-data";
import { adviceOf, type Candidate } from "#words/retention-advice";
import { describeVerdict, formatLate, VERDICT_NAMES } from "#words/verdict-words";
import { formatEstimate } from "#words/words";
import type { Column } from "./output.ts";
import { renderTable } from "./table.ts";
import { formatDuration, formatMoment, Moment, Span } from "./times.ts";

/** The columns of a list of namespaces. */
export const ADVICE_COLUMNS: readonly Column<GetRetentionAdviceResponse>[] = [
  ["NAMESPACE", ({ namespace }) => namespace],
  ["KEY RETENTION", ({ keyRetention }) => new Span(keyRetention)],
  ["VERDICT", (answer) => VERDICT_NAMES[adviceOf(answer).verdict]],
  ["OBSERVED SINCE", ({ observedSince }) => new Moment(observedSince), "wide"],
  ["ADVICE", (answer) => describeVerdict(adviceOf(answer)), "text"],
];

/** Returns the verdict on a namespace's retention, and the table of its candidates. */
export function describeAdvice(answer: GetRetentionAdviceResponse): string {
  const { namespace, keyRetention, observedSince } = answer;
  const advice = adviceOf(answer);
  const since = observedSince === undefined ? "no claim yet" : `claims since ${formatMoment(observedSince)}`;
  // Of longer retentions than the first unknown one, nothing is known either.
  const unknown = advice.candidates.findIndex(
    ({ retentionMs, evidence }) => retentionMs > advice.retentionMs && evidence.kind === "missing",
  );
  const shown = unknown < 0 ? advice.candidates : advice.candidates.slice(0, unknown + 1);
  const rows = shown.map((candidate) => candidateRow(candidate, advice.retentionMs));
  return [
    `Key retention in ${namespace}: ${formatDuration(keyRetention)}; ${since}.`,
    `${VERDICT_NAMES[advice.verdict]}. ${describeVerdict(advice)}\n`,
    renderTable(["KEY RETENTION", "LATE A MONTH", "ON DAYS", "RECORDS", "SIZE"], rows),
  ].join("\n");
}

function candidateRow({ retentionMs, evidence, records, bytes }: Candidate, inForceMs: number) {
  return [
    `${formatDurationMs(retentionMs)}${retentionMs === inForceMs ? " (now)" : ""}`,
    evidence.kind === "missing" ? missingWords(evidence.days) : formatLate(evidence),
    evidence.kind === "missing" ? "-" : `${evidence.daysWithLate} of ${Math.round(evidence.daysObserved)}`,
    formatEstimate(Math.round(records)),
    bytes === 0 ? "-" : formatSize(bytes),
  ];
}

function missingWords(missingDays: number): string {
  return missingDays === 0 ? "not known" : describeInsufficientData({ missingDays, missingClaims: 0n });
}
