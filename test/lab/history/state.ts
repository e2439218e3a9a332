/** The checker's model of one record between two operations. */

/** An instant or a duration that is only known to lie between two bounds, both included. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A record that was claimed. Times are milliseconds on the history's clock. */
export interface HeldRecord {
  readonly phase: "held" | "released" | "completed";
  /** The fingerprint that the key is bound to; undefined: none yet. */
  readonly fingerprint: string | undefined;
  /** The newest claim's id; empty for none. */
  readonly claimId: string;
  readonly attempt: number;
  readonly leaseMs: number;
  /** When the newest claim's lease ends. */
  readonly leaseEnds: Range;
  /** From when an expired lease is held, by the policy; infinite: never. */
  readonly heldFrom: Range;
  /** Whether the newest claim's effect has not begun. A replica of the previous version may answer as if it had. */
  readonly isPending: boolean;
  /** What giving back the newest claim restores: what it took over, of unknown outcome. */
  readonly unknown: State | undefined;
  /** The token of the claim that was given back, if the newest one is that which it had taken over; 0: there is none. */
  readonly givenBack: number;
  /** Whether the newest claim accepts ambiguity, or that which was given back did. */
  readonly acceptsAmbiguous: boolean;
  /** The stamped retentions, which count from `stampedAt`. */
  readonly keyRetention: Range;
  readonly resultRetention: Range;
  readonly failureRetention: Range;
  /** When the record was claimed or, if completed, completed. */
  readonly stampedAt: Range;
  /** When the key's retention ends. */
  readonly keyEnds: Range;
  /** A completed record's result, and when its retention ends. */
  readonly hash: string;
  readonly isFailure: boolean;
  readonly resultEnds: Range;
}

/** A forgotten result that cached copies may still replay for a while. */
export interface Copy {
  readonly fingerprint: string | undefined;
  readonly hash: string;
  /** Calls that are made later must not see it. */
  readonly untilMs: number;
}

/** The model of one key: absent unless there is a record. Immutable. */
export interface State {
  /**
   * The token of the newest claim so far, 0 before the first; it stays when the record is forgotten. If the
   * grant's reply was lost, the token is only known to be greater than this.
   */
  readonly token: number;
  readonly isTokenKnown: boolean;
  readonly record: HeldRecord | undefined;
  readonly copies: readonly Copy[];
  /** The record in the newest copy of the database. */
  readonly saved: HeldRecord | undefined;
}

/** A key that was never claimed. */
export const ABSENT: State = {
  token: 0,
  isTokenKnown: true,
  record: undefined,
  copies: [],
  saved: undefined,
};

/** Why an operation's answer is illegal in a state. */
export interface Illegal {
  /** The number of the violated invariant. */
  readonly invariant: number;
  readonly because: string;
}

/** @see Illegal */
export function illegal(invariant: number, because: string): Illegal {
  return { invariant, because };
}

/** An outcome of an operation: a state that it may have left, or why its answer is illegal. */
export type Step = State | Illegal;

/** Returns whether the model allows a step. */
export function isState(step: Step): step is State {
  return "copies" in step;
}

/** @see Range */
export function range(from: number, to: number): Range {
  return { from, to };
}

/** Returns the range of a sum. */
export function sum(a: Range, b: Range): Range {
  return { from: a.from + b.from, to: a.to + b.to };
}

/** Returns the range of the lesser of two. */
export function least(a: Range, b: Range): Range {
  return { from: Math.min(a.from, b.from), to: Math.min(a.to, b.to) };
}

/** Returns the range of the greater of two. */
export function greatest(a: Range, b: Range): Range {
  return { from: Math.max(a.from, b.from), to: Math.max(a.to, b.to) };
}

/** Returns a state as one string: states with equal strings allow the same further answers. */
export function stateKey({ token, isTokenKnown, record, copies, saved }: State): string {
  const known = isTokenKnown ? "" : "+";
  const past = copies.map(({ hash, untilMs }) => `${hash}<${untilMs}`).join();
  return [`${token}${known}`, past, recordKey(record), recordKey(saved)].join("||");
}

function recordKey(record: HeldRecord | undefined): string {
  if (record === undefined) return "";
  const { phase, fingerprint, claimId, attempt, leaseMs, hash, isFailure, isPending, unknown } = record;
  const ranges = [
    record.leaseEnds,
    record.heldFrom,
    record.keyEnds,
    record.resultEnds,
    record.stampedAt,
    record.keyRetention,
    record.resultRetention,
    record.failureRetention,
  ];
  const bounds = ranges.map(({ from, to }) => `${from},${to}`).join();
  const claims = [claimId, attempt, leaseMs, isPending, record.givenBack, record.acceptsAmbiguous];
  return [phase, fingerprint, ...claims, hash, isFailure, bounds, unknown && stateKey(unknown)].join("|");
}

/** Describes a state for a timeline. */
export function describeState({ token, isTokenKnown, record }: State, originMs: number): string {
  const number = isTokenKnown ? String(token) : `more than ${token}`;
  if (record === undefined) return token === 0 ? "ABSENT" : `ABSENT (token ${number} before)`;
  const bound = record.fingerprint === undefined ? "" : `, ${record.fingerprint}`;
  switch (record.phase) {
    case "held":
      return `HELD(${number}${bound}, until ${instant(record.leaseEnds, originMs)})`;
    case "released":
      return `RELEASED(${number}${bound})`;
    case "completed":
      return `DONE(${number}${bound}, ${record.hash}, until ${instant(record.keyEnds, originMs)})`;
  }
}

function instant({ from, to }: Range, originMs: number): string {
  return from === to ? point(from - originMs) : `${point(from - originMs)}..${point(to - originMs)}`;
}

function point(ms: number): string {
  return Number.isFinite(ms) ? `${Number(ms.toFixed(3))} ms` : "?";
}
