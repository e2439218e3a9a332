import type { GetRetentionAdviceResponse, RetentionCandidate } from "@onceward/client/proto";
import { describeInsufficientData } from "#words/insufficient-data";
import { adviceOf } from "#words/retention-advice";
import { judge } from "#words/retention-verdict";
import { describeVerdict, VERDICT_NAMES } from "#words/verdict-words";
import type { Column } from "./output.ts";
import { renderTable } from "./table.ts";
import { formatDuration, formatMoment, Moment, Span } from "./times.ts";

/** The columns of a list of namespaces. */
export const ADVICE_COLUMNS: readonly Column<GetRetentionAdviceResponse>[] = [
  ["NAMESPACE", ({ namespace }) => namespace],
  ["KEY RETENTION", ({ keyRetention }) => new Span(keyRetention)],
  ["VERDICT", (advice) => VERDICT_NAMES[verdictOf(advice).kind]],
  ["OBSERVED SINCE", ({ observedSince }) => new Moment(observedSince), "wide"],
  ["ADVICE", (advice) => describeVerdict(verdictOf(advice)), "text"],
];

/** Returns the verdict on a namespace's retention, the table of its candidates, and the recommendation. */
export function describeAdvice(advice: GetRetentionAdviceResponse): string {
  const { namespace, keyRetention, observedSince, candidates } = advice;
  const since = observedSince === undefined ? "no claim yet" : `claims since ${formatMoment(observedSince)}`;
  const current = formatDuration(keyRetention);
  const verdict = verdictOf(advice);
  const largest = Math.max(0, ...candidates.map(({ bytes }) => bytes));
  return [
    `Key retention in ${namespace}: ${current}; ${since}. Intervals hold with 95 %.\n${VERDICT_NAMES[verdict.kind]}. ${describeVerdict(verdict)}\n`,
    renderTable(
      [
        "KEY RETENTION",
        "LATE A MONTH",
        "INTERVAL",
        "ON DAYS",
        "AT MOST A MILLION",
        "RECORDS",
        "SIZE",
        "MISSING",
      ],
      candidates.map((candidate) => {
        const retention = formatDuration(candidate.keyRetention);
        return candidateRow(candidate, `${retention}${retention === current ? " (now)" : ""}`, largest);
      }),
      { width: 80, wide: true },
    ),
    `${describeRecommendation(advice)}\n`,
  ].join("\n");
}

function candidateRow(
  { evidence, records, bytes }: RetentionCandidate,
  label: string,
  largestBytes: number,
): readonly string[] {
  const cost = [round(records), bytes === 0 ? "-" : formatBytes(bytes, largestBytes)];
  if (evidence.case !== "late") {
    const missing = evidence.case === undefined ? "" : describeInsufficientData(evidence.value);
    return [label, "-", "-", "-", "-", ...cost, missing];
  }
  const { perMonth, perMonthLow, perMonthHigh, daysWithLate, daysObserved, maxPerMillion } = evidence.value;
  return [
    label,
    round(perMonth),
    `${round(perMonthLow)} – ${round(perMonthHigh)}`,
    `${daysWithLate} of ${Math.round(daysObserved)}`,
    round(maxPerMillion),
    ...cost,
    "",
  ];
}

function verdictOf(advice: GetRetentionAdviceResponse) {
  return judge(adviceOf(advice));
}

function describeRecommendation({
  recommendation,
  maxLatePerMillion,
  keyRetention,
}: GetRetentionAdviceResponse): string {
  const target = `at most ${round(maxLatePerMillion)} late in a million claims`;
  switch (recommendation.case) {
    case "sufficientRetention": {
      const retention = formatDuration(recommendation.value);
      const now = retention === formatDuration(keyRetention) ? ", the one in force" : "";
      return `${retention} is enough for ${target}${now}.`;
    }
    case "insufficient":
      return `For ${target}: ${describeInsufficientData(recommendation.value)}.`;
    case "none":
      return `No retention of these is enough for ${target}.`;
    case undefined:
      return "The service gave an answer that this version does not know.";
  }
}

/** Returns a number with three significant digits, and whole from 100 on. */
function round(value: number): string {
  const rounded = value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return rounded.toLocaleString("en", { maximumSignificantDigits: 15 });
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Returns a number of bytes in the unit of the largest of its column. */
function formatBytes(bytes: number, largest: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, largest)) / 10));
  return `${round(bytes / 1024 ** power)} ${UNITS[power]}`;
}
