/** What the checker believes about one record between two operations. */

/** Something that lies between two bounds, both included: an instant, or how long something is. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A record that was claimed, in milliseconds of the history's clock wherever time is meant. */
export interface HeldRecord {
  readonly phase: "held" | "released" | "completed";
  /** What the key is bound to; undefined: nothing yet. */
  readonly fingerprint: string | undefined;
  /** The newest claim's; empty for none. */
  readonly claimId: string;
  readonly attempt: number;
  readonly leaseMs: number;
  /** When the newest claim's lease ends. */
  readonly leaseEnds: Range;
  /** The retentions it was stamped with: how long from `stampedAt`. */
  readonly keyRetention: Range;
  readonly resultRetention: Range;
  readonly failureRetention: Range;
  /** When it was claimed or, if completed, completed. */
  readonly stampedAt: Range;
  /** When the key is forgotten. */
  readonly keyEnds: Range;
  /** Of a completed record: the result, and when it is forgotten. */
  readonly hash: string;
  readonly isFailure: boolean;
  readonly resultEnds: Range;
}

/** A result that was forgotten, and that copies may still replay for a while. */
export interface Copy {
  readonly fingerprint: string | undefined;
  readonly hash: string;
  /** No call that is made later may still see it. */
  readonly untilMs: number;
}

/** The model of one key: absent unless there is a record. Never changed in place. */
export interface State {
  /**
   * The token of the newest claim there ever was, 0 before the first; it stays when the record is forgotten. Where the
   * grant's reply was lost, the token is only known to be greater than this.
   */
  readonly token: number;
  readonly isTokenKnown: boolean;
  readonly record: HeldRecord | undefined;
  readonly copies: readonly Copy[];
}

/** A key that nobody has claimed yet. */
export const ABSENT: State = { token: 0, isTokenKnown: true, record: undefined, copies: [] };

/** Why an operation can't have been answered as it was from a state. */
export interface Illegal {
  /** Of the reliability design's numbered invariants. */
  readonly invariant: number;
  readonly because: string;
}

/** @see Illegal */
export function illegal(invariant: number, because: string): Illegal {
  return { invariant, because };
}

/** What can come of an operation: the states that it may have left, or why it can't have come. */
export type Step = State | Illegal;

/** Whether a step is one that the model allows. */
export function isState(step: Step): step is State {
  return "copies" in step;
}

/** @see Range */
export function range(from: number, to: number): Range {
  return { from, to };
}

/** The sum of something between two bounds and something between two others. */
export function sum(a: Range, b: Range): Range {
  return { from: a.from + b.from, to: a.to + b.to };
}

/** The lesser, or greater, of two things of which only bounds are known. */
export function least(a: Range, b: Range): Range {
  return { from: Math.min(a.from, b.from), to: Math.min(a.to, b.to) };
}

/** @see least */
export function greatest(a: Range, b: Range): Range {
  return { from: Math.max(a.from, b.from), to: Math.max(a.to, b.to) };
}

/** A state as one string: two states that are written alike allow the same from there on. */
export function stateKey({ token, isTokenKnown, record, copies }: State): string {
  const known = isTokenKnown ? "" : "+";
  const past = copies.map(({ hash, untilMs }) => `${hash}<${untilMs}`).join();
  if (record === undefined) return `${token}${known}|${past}`;
  const { phase, fingerprint, claimId, attempt, leaseMs, hash, isFailure } = record;
  const ranges = [
    record.leaseEnds,
    record.keyEnds,
    record.resultEnds,
    record.stampedAt,
    record.keyRetention,
    record.resultRetention,
    record.failureRetention,
  ];
  const bounds = ranges.map(({ from, to }) => `${from},${to}`).join();
  return [token, known, past, phase, fingerprint, claimId, attempt, leaseMs, hash, isFailure, bounds].join(
    "|",
  );
}

/** For people. */
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
