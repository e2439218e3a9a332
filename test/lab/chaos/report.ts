import type { Operation } from "../history/operation.ts";
import { countErrors } from "./errors.ts";
import type { FaultEffect } from "./fault-effects.ts";
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
  /** By fault: what claims of new keys met while it lasted. */
  readonly effects: Readonly<Record<string, Effect>>;
}

/** What claims of new keys met while faults of one kind lasted. */
export interface Effect {
  /** How many of the faults refused or delayed a claim. */
  readonly effective: number;
  /** Of keys that the fault hits: not granted before it healed. */
  readonly refused: number;
  readonly granted: number;
  readonly granted_others: number;
}

/** Counts a round's results. */
export function reportOf(
  { evidence, judgement, injections, recoveries, effects, accidents, loadEndedAtMs }: Round,
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
    // A process that ends unexpectedly, a drain that fails and a late recovery break promises too.
    violations: judgement.violations.length + accidents.length + recoveries.filter(isLate).length,
    longest_unavailable_ms: longestUnavailableMs(operations, injections, loadEndedAtMs),
    longest_recovery_ms: longestRecoveryMs(recoveries),
    effects: sumEffects(effects),
  };
}

function sumEffects(effects: readonly FaultEffect[]): Record<string, Effect> {
  const sums: Record<string, Effect> = {};
  for (const { fault, refused, granted, grantedOthers } of effects) {
    const { [fault]: sum = { effective: 0, refused: 0, granted: 0, granted_others: 0 } } = sums;
    sums[fault] = {
      effective: sum.effective + Number(refused > 0),
      refused: sum.refused + refused,
      granted: sum.granted + granted,
      granted_others: sum.granted_others + grantedOthers,
    };
  }
  return sums;
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

const NO_EFFECT: Effect = { effective: 0, refused: 0, granted: 0, granted_others: 0 };

/** Formats the report for a terminal. */
export function formatReport(report: Report): string {
  const { ops, errors, faults, longest_unavailable_ms: longest, longest_recovery_ms: recovery } = report;
  const rows = Object.entries(faults)
    .sort()
    .map(([name, count]) => {
      const figures = [longest[name], recovery[name]].map((ms) =>
        (ms === undefined ? "" : `${ms} ms`).padStart(12),
      );
      const { effective, refused, granted, granted_others: others } = report.effects[name] ?? NO_EFFECT;
      const met = [effective, refused, granted, others].map((claims) => String(claims).padStart(7)).join("");
      return `  ${name.padEnd(30)}${String(count).padStart(5)}${figures.join("")}${met}`;
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
    "faults: count, longest time without any answer, latest recovery; of the count, how many refused a claim",
    "  of a new key while they lasted; claims refused, claims granted, granted of keys of other nodes or shards",
    ...(rows.length > 0 ? rows : ["  none"]),
  ].join("\n");
}
