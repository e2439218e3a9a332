import type { LiveRecord } from "./record.ts";
import { settlesUnknown } from "./settlement.ts";

/** Maximum attempts that are shown. */
export const MAX_ATTEMPTS_SHOWN = 16;

/** One grant of a key's claim, and how it ended. Times are milliseconds since the Unix epoch. */
export interface Attempt {
  /** 1 for the first of the record's life. */
  readonly number: number;
  readonly fencingToken: bigint;
  readonly owner: string;
  readonly claimedAtMs: number;
  /** The name of the record's last checkpoint when the attempt ended. Empty: none. */
  readonly checkpoint: string;
  readonly ending: "held" | "superseded" | "released" | "completed" | "settled" | "resolved" | "given back";
  /** Undefined: it has not ended. */
  readonly endedAtMs: number | undefined;
  /** At most 128 characters. Empty: none. */
  readonly reason: string;
  /** The record job that resolved the record. Undefined: none. */
  readonly recordJob: bigint | undefined;
}

/** The length to which reasons are shortened. */
export const MAX_REASON_CHARACTERS = 128;

/**
 * Returns the attempts of a record's life, oldest first: the last MAX_ATTEMPTS_SHOWN.
 *
 * @param past the attempts that the row keeps, read when the record was read or later. Those of an earlier
 *   life or of a later claim are skipped. The newest claim is among them only if it was resolved.
 */
export function attemptsOf(record: LiveRecord, past: readonly Attempt[]): readonly Attempt[] {
  const { fencingToken, firstClaimedAtMs, phase } = record;
  const earlier = past.filter(
    (attempt) =>
      (attempt.fencingToken < fencingToken || attempt.ending === "given back") &&
      microseconds(attempt.claimedAtMs) >= microseconds(firstClaimedAtMs),
  );
  const isSettled = phase.kind === "released" || phase.kind === "completed";
  const resolved = past.find(
    (attempt) => isSettled && attempt.fencingToken === fencingToken && attempt.ending === "resolved",
  );
  return [...earlier, resolved ?? newestAttempt(record)]
    .sort((a, b) => a.claimedAtMs - b.claimedAtMs)
    .slice(-MAX_ATTEMPTS_SHOWN);
}

/** Two statements may give one time with different rounding errors. */
function microseconds(ms: number): number {
  return Math.round(ms * 1000);
}

/** Returns the newest attempt, if no administrator resolved it. */
function newestAttempt(record: LiveRecord): Attempt {
  const { attempt, fencingToken, owner, claimedAtMs, checkpoint, phase } = record;
  const begun = {
    ...{ number: attempt, fencingToken, owner, claimedAtMs },
    checkpoint: checkpoint?.name ?? "",
    reason: "",
    recordJob: undefined,
  };
  switch (phase.kind) {
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { ...begun, ending: "held", endedAtMs: undefined };
    case "released": {
      const reason = [...phase.reason].slice(0, MAX_REASON_CHARACTERS).join("");
      return { ...begun, ending: "released", endedAtMs: phase.releasedAtMs, reason };
    }
    case "completed":
      return {
        ...begun,
        ending: settlesUnknown(record) ? "settled" : "completed",
        endedAtMs: phase.completedAtMs,
      };
  }
}
