import type { Operation } from "./operation.ts";
import type { PolicyBook } from "./policies.ts";
import { type HeldRecord, type Range, range, type State } from "./state.ts";

/** An operation about to take effect, and the bounds of its instant. */
export interface Moment {
  readonly operation: Operation;
  /** When it took effect, on the database's clock: during its call, and before later operations returned. */
  readonly at: Range;
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
export function mayRun({ at, toleranceMs }: Moment, ends: Range): boolean {
  return at.from < ends.to + toleranceMs;
}

/** Returns whether the moment may lie at or after an end. */
export function mayHaveEnded({ at }: Moment, ends: Range): boolean {
  return at.to >= ends.from;
}

/** Returns the range of an end that comes after the moment; the same object if that narrows nothing. */
export function stillRunning({ at }: Moment, ends: Range): Range {
  return at.from > ends.from ? range(at.from, Math.max(at.from, ends.to)) : ends;
}

/** Returns the range of an end that came by the moment; the same object if that narrows nothing. */
export function endedBy({ at }: Moment, ends: Range): Range {
  return at.to < ends.to ? range(Math.min(at.to, ends.from), at.to) : ends;
}

/** Returns the ways in which the key may have looked at the moment: with its record, or without. */
export function sightings(state: State, moment: Moment): Sighting[] {
  const { record } = state;
  if (record === undefined) return [{ state, record: undefined }];
  const seen: Sighting[] = [];
  if (mayRun(moment, record.keyEnds)) {
    const live = withRecord(state, record, { keyEnds: stillRunning(moment, record.keyEnds) });
    seen.push({ state: live, record: live.record });
  }
  if (mayHaveEnded(moment, record.keyEnds)) {
    // The record stays: an operation that began earlier may be ordered after this one and have seen it.
    const ended = withRecord(state, record, { keyEnds: endedBy(moment, record.keyEnds) });
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
