import { Record_State, type Record as RecordMessage } from "../gen/onceward/v1/record_pb.ts";
import { type Claim, ClaimAbandoned, type RunningClaim } from "../run/claim.ts";
import { judgeUnder } from "../run/judgement.ts";

/** Returns a key's record; undefined if there is none. @throws OncewardError. */
export type RecordLookup = (key: string) => Promise<RecordMessage | undefined>;

/**
 * What became of the effect of an earlier attempt. It happened: `value` is stored, and is the call's result. It did not
 * happen: the tool runs now.
 */
export type Resolution<Value = unknown> =
  | { readonly happened: true; readonly value: Value }
  | { readonly happened: false };

/** Finds out what became of an earlier attempt; undefined: it remains unknown. */
export type Resolver = (claim: Claim) => Promise<Resolution | undefined>;

/** The claim's checkpoint once the tool is about to begin. A tool's own checkpoint means the same. */
const STARTED = "onceward.tool-started";
/** The claim's checkpoint once the tool has thrown: the next attempt may run it. */
const FAILED = "onceward.tool-failed";
/** The claim's checkpoint once a later attempt has found that the outcome of an earlier one is unknown. */
const HELD = "onceward.tool-held";

/** Thrown by the guarded function: it is unknown whether an earlier attempt had its effect. */
export class HeldError extends Error {
  override readonly name = "HeldError";
}

/**
 * Runs a tool so that an attempt which begins after a crash does not repeat its effect, whether the namespace's policy is
 * HOLD or RECLAIM: the claim's checkpoint says whether an earlier attempt began.
 *
 * @param before the record before it was claimed.
 * @throws HeldError if it is unknown whether an earlier attempt had its effect; else the errors of `runTool`.
 */
export async function runHeld(
  claim: Claim,
  before: RecordMessage | undefined,
  resolve: Resolver | undefined,
  fn: (claim: Claim) => unknown,
): Promise<unknown> {
  if (!claim.guarded) return await runTool(claim, fn);
  if (isUnknown(claim, before)) {
    const resolution = await resolved(claim, resolve);
    if (resolution.happened) return resolution.value;
  }
  await claim.saveCheckpoint(STARTED);
  try {
    return await runTool(claim, fn);
  } catch (error) {
    if (error instanceof ClaimAbandoned) throw error;
    // If this fails, a later attempt finds the outcome unknown: too careful, and correct.
    await claim.saveCheckpoint(FAILED).catch(() => {});
    throw error;
  }
}

/** Runs a tool. @throws ClaimAbandoned if it may have had its effect, so that the lease expires; else its own error. */
export async function runTool(
  claim: Claim & Partial<RunningClaim>,
  fn: (claim: Claim) => unknown,
): Promise<unknown> {
  try {
    const value = await fn(claim);
    if (claim.unknownBecause === undefined) return value;
  } catch (error) {
    if (judgeUnder(claim, error) !== "unknown") throw error;
  }
  throw new ClaimAbandoned("A tool was stopped, and may have had its effect.");
}

/** Returns whether an attempt that ended without an effect is certain: nothing was marked as started. */
export function hasNotStarted(checkpoint: { readonly name: string } | undefined): boolean {
  return checkpoint === undefined || checkpoint.name === FAILED;
}

function isUnknown({ attempt, checkpoint }: Claim, before: RecordMessage | undefined): boolean {
  if (attempt === 1 || hasNotStarted(checkpoint)) return false;
  if (checkpoint?.name === HELD) return true;
  // An administrator, or the tool's own process, released the record: the last attempt had no effect.
  return !(before?.state === Record_State.RELEASED && before.attempt === attempt - 1);
}

/** @throws HeldError unless the outcome is now known. */
async function resolved(claim: Claim, resolve: Resolver | undefined): Promise<Resolution> {
  let cause: unknown;
  try {
    const resolution = await resolve?.(claim);
    if (resolution !== undefined) return resolution;
  } catch (error) {
    cause = error;
  }
  await claim.saveCheckpoint(HELD);
  throw new HeldError("It is unknown whether an earlier attempt had its effect.", { cause });
}
