import type { Operation } from "./operation.ts";
import type { PolicyBook } from "./policies.ts";
import { type HeldRecord, type Range, range, type State } from "./state.ts";

/** An operation about to take effect, and the bounds of its instant. */
export interface Moment {
  readonly operation: Operation;
  /** What the database's clock showed when it took effect: during its call, and before later operations returned. */
  readonly clock: Range;
  /** The same, of the time by which `reclaim_within` has passed. */
  readonly reclaimClock: Range;
  /** The same, of the time by which a key may be granted again (`clock-moves.ts`). */
  readonly retentionClock: Range;
  /** Returns how late retention may have taken it to be, for a record that was stamped at this moment or later. */
  readonly retentionFollowedMs: (stampedAtMs: number) => number;
  readonly book: PolicyBook;
  /** How much later than its last possible moment the end of a lease or a retention may be noticed. */
  readonly toleranceMs: number;
}

/** One way in which an operation may have seen the key, with the ranges narrowed to that. */
export interface Sighting {
  readonly state: State;
  /** The record that the operation saw; undefined: none, or one whose retention had ended. */
  readonly record: HeldRecord | undefined;
}

/** Returns whether the moment may lie before an end. */
export function mayRun({ clock, toleranceMs }: Moment, ends: Range): boolean {
  return clock.from < ends.to + toleranceMs;
}

/** Returns whether the moment may lie at or after an end. */
export function mayHaveEnded({ clock }: Pick<Moment, "clock">, ends: Range): boolean {
  return clock.to >= ends.from;
}

const NEVER = range(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);

/** Returns from when a lease is certainly held, if it has ended. */
export function holdOf({ isPending, heldFrom }: HeldRecord): Range {
  return isPending ? NEVER : heldFrom;
}

/** Returns a clock by which the retention of a record may have ended. */
export function retentionOf(
  { stampedAt }: HeldRecord,
  clock: Range,
  { retentionFollowedMs }: Moment,
): { readonly clock: Range } {
  return { clock: range(clock.from, Math.max(clock.to, retentionFollowedMs(stampedAt.from))) };
}

/** Returns the range of an end that comes after the moment; the same object if that narrows nothing. */
export function stillRunning({ clock }: Moment, ends: Range): Range {
  return clock.from > ends.from ? range(clock.from, Math.max(clock.from, ends.to)) : ends;
}

/** Returns the range of an end that came by the moment; the same object if that narrows nothing. */
export function endedBy({ clock }: Pick<Moment, "clock">, ends: Range): Range {
  return clock.to < ends.to ? range(Math.min(clock.to, ends.from), clock.to) : ends;
}

/**
 * Returns the ways in which the key may have looked at the moment: with its record, or without. While the database's
 * clock is ahead, a record may not be shown, but its key is not granted again.
 */
export function sightings(state: State, moment: Moment): Sighting[] {
  const { record } = state;
  if (record === undefined) return [{ state, record: undefined }];
  const seen: Sighting[] = [];
  if (mayRun(moment, record.keyEnds)) {
    const live = withRecord(state, record, { keyEnds: stillRunning(moment, record.keyEnds) });
    seen.push({ state: live, record: live.record });
  }
  const isClaim = moment.operation.request.kind === "claim";
  const retention = retentionOf(record, isClaim ? moment.retentionClock : moment.clock, moment);
  if (mayHaveEnded(retention, record.keyEnds)) {
    // The record stays: an operation that began earlier may be ordered after this one and have seen it.
    const ended = withRecord(state, record, { keyEnds: endedBy(retention, record.keyEnds) });
    seen.push({ state: ended, record: undefined });
  }
  return seen;
}

/** Returns a state with fields of its record replaced; the same object if none differs. */
export function withRecord(state: State, record: HeldRecord, fields: Partial<HeldRecord>): State {
  const names = Object.keys(fields) as (keyof HeldRecord)[];
  if (names.every((name) => fields[name] === record[name])) return state;
  return { ...state, record: { ...record, ...fields } };
}

/**
 * Compares a token with the key's newest claim. If the reply with that claim's token was lost, the token may
 * be the claim's own, which `own` then records, or another's.
 */
export function matchToken(
  state: State,
  token: number,
): { readonly own: State | undefined; readonly other: boolean } {
  if (state.isTokenKnown)
    return { own: token === state.token ? state : undefined, other: token !== state.token };
  return { own: token > state.token ? { ...state, token, isTokenKnown: true } : undefined, other: true };
}
