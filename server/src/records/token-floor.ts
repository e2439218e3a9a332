/**
 * The floor of fencing tokens: a statement gives out higher ones. Tokens are microseconds of the database's clock, so the
 * floor decides only after the clock was set back (server/decisions/0025-tokens-from-the-clock.md).
 */
export type TokenFloor = ReturnType<typeof createTokenFloor>;

/**
 * By how much the floor rises automatically. Other replicas may give out tokens above it that this one does not see for some
 * seconds: at most 256 for each statement. It rises beyond them before their rows can be swept, and slower than the clock,
 * which stays ahead of it.
 */
const RISE_PER_MS = 100;

/** Creates a floor below all tokens. */
export function createTokenFloor(nowMs: () => number = () => performance.now()) {
  let raisedTo = 0;
  let raisedAtMs = nowMs();
  const current = () => raisedTo + Math.floor((nowMs() - raisedAtMs) * RISE_PER_MS);
  return {
    /** Returns the floor for a statement that starts now. */
    current,
    /** Raises the floor to a token that was given out, or to another floor. */
    raise(token: number): void {
      if (token <= current()) return;
      raisedTo = token;
      raisedAtMs = nowMs();
    },
  };
}
