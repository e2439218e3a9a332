import type { Operation } from "../history/operation.ts";
import { countErrors } from "./errors.ts";
import { isLate, type Recovery } from "./recovery.ts";
import type { Round } from "./round.ts";
import { longestUnavailableMs } from "./unavailability.ts";

/** `chaos.json`. */
export interface Report {
  readonly seed: number;
  readonly minutes: number;
  readonly ops: { readonly ok: number; readonly refused: number; readonly unknown: number };
  /** Errors of unknown outcome, by origin and by code and reason or message. */
  readonly errors: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly histories: number;
  readonly timeouts: number;
  readonly violations: number;
  readonly longest_unavailable_ms: Readonly<Record<string, number>>;
  /** By fault: when the last client was served again by the last replica; only where it could be measured. */
  readonly longest_recovery_ms: Readonly<Record<string, number>>;
}

/** Counts a round's results. */
export function reportOf(
  { evidence, judgement, injections, recoveries, accidents, loadEndedAtMs }: Round,
  seed: number,
  durationMs: number,
): Report {
  const { operations } = evidence.history;
  const faults: Record<string, number> = {};
  for (const { fault } of injections) faults[fault] = (faults[fault] ?? 0) + 1;
  return {
    seed,
    minutes: durationMs / 60_000,
    ops: countAnswers(operations),
    errors: countErrors(operations),
    faults,
    histories: judgement.histories,
    timeouts: judgement.timeouts.length,
    // A process that ends by itself, a drain that fails and a late recovery break promises too.
    violations: judgement.violations.length + accidents.length + recoveries.filter(isLate).length,
    longest_unavailable_ms: longestUnavailableMs(operations, injections, loadEndedAtMs),
    longest_recovery_ms: longestRecoveryMs(recoveries),
  };
}

function longestRecoveryMs(recoveries: readonly Recovery[]): Record<string, number> {
  const longest: Record<string, number> = {};
  for (const { fault, afterMs } of recoveries)
    longest[fault] = Math.round(Math.max(longest[fault] ?? 0, afterMs));
  return longest;
}

function countAnswers(operations: readonly Operation[]): Report["ops"] {
  const unknown = operations.filter(({ answer }) => answer.kind === "unknown").length;
  const refused = operations.filter(({ answer }) => answer.kind === "refused").length;
  return { ok: operations.length - unknown - refused, refused, unknown };
}

/** Formats the report for a terminal. */
export function formatReport(report: Report): string {
  const { ops, errors, faults, longest_unavailable_ms: longest, longest_recovery_ms: recovery } = report;
  const rows = Object.entries(faults)
    .sort()
    .map(([name, count]) => {
      const figures = [longest[name], recovery[name]].map((ms) =>
        (ms === undefined ? "" : `${ms} ms`).padStart(12),
      );
      return `  ${name.padEnd(28)}${String(count).padStart(5)}${figures.join("")}`;
    });
  return [
    `operations   ${ops.ok} ok, ${ops.refused} refused, ${ops.unknown} unknown`,
    `histories    ${report.histories}`,
    `timeouts     ${report.timeouts}`,
    `violations   ${report.violations}`,
    "errors: count, origin and reason",
    ...Object.entries(errors)
      .sort()
      .map(([name, count]) => `${String(count).padStart(7)}  ${name}`),
    "faults: count, longest time without any answer, latest recovery",
    ...(rows.length > 0 ? rows : ["  none"]),
  ].join("\n");
}
