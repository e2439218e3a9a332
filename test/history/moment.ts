import type { Operation } from "./operation.ts";
import type { PolicyBook } from "./policies.ts";
import { type HeldRecord, type Range, range, type State } from "./state.ts";

/** An operation about to take effect, and what is known of when. */
export interface Moment {
  readonly operation: Operation;
  /** When it took effect, on the database's clock: inside its call, and before what comes after it had returned. */
  readonly at: Range;
  readonly book: PolicyBook;
  /** How much later than its last possible moment the end of a lease or a retention may be noticed. */
  readonly toleranceMs: number;
}

/** A record with something narrowed down by what the operation would have seen. */
export interface Sighting {
  readonly state: State;
  /** What the operation met; undefined: no record, or one whose retention had ended. */
  readonly record: HeldRecord | undefined;
}

/** Whether the moment may lie before what ends then. */
export function mayRun({ at, toleranceMs }: Moment, ends: Range): boolean {
  return at.from < ends.to + toleranceMs;
}

/** Whether the moment may lie at or after what ends then. */
export function mayHaveEnded({ at }: Moment, ends: Range): boolean {
  return at.to >= ends.from;
}

/** What ends then, known to run still at the moment; the same range if that says nothing new. */
export function stillRunning({ at }: Moment, ends: Range): Range {
  return at.from > ends.from ? range(at.from, Math.max(at.from, ends.to)) : ends;
}

/** What ends then, known to have ended by the moment; the same range if that says nothing new. */
export function endedBy({ at }: Moment, ends: Range): Range {
  return at.to < ends.to ? range(Math.min(at.to, ends.from), at.to) : ends;
}

/** The ways in which the key may have looked at the moment: with its record, and as if it were absent. */
export function sightings(state: State, moment: Moment): Sighting[] {
  const { record } = state;
  if (record === undefined) return [{ state, record: undefined }];
  const seen: Sighting[] = [];
  if (mayRun(moment, record.keyEnds)) {
    const live = withRecord(state, record, { keyEnds: stillRunning(moment, record.keyEnds) });
    seen.push({ state: live, record: live.record });
  }
  if (mayHaveEnded(moment, record.keyEnds)) {
    // The record stays: an operation that began earlier may be ordered after this one and still have seen it.
    const ended = withRecord(state, record, { keyEnds: endedBy(moment, record.keyEnds) });
    seen.push({ state: ended, record: undefined });
  }
  return seen;
}

/** A state with some of its record's fields replaced; the very same state if none differs. */
export function withRecord(state: State, record: HeldRecord, fields: Partial<HeldRecord>): State {
  const names = Object.keys(fields) as (keyof HeldRecord)[];
  if (names.every((name) => fields[name] === record[name])) return state;
  return { ...state, record: { ...record, ...fields } };
}

/**
 * How a token relates to the key's newest claim. Where that claim's own token never came back, a token may be it, and
 * then `state` knows it; or it may be another's.
 */
export function matchToken(
  state: State,
  token: number,
): { readonly own: State | undefined; readonly other: boolean } {
  if (state.isTokenKnown)
    return { own: token === state.token ? state : undefined, other: token !== state.token };
  return { own: token > state.token ? { ...state, token, isTokenKnown: true } : undefined, other: true };
}
