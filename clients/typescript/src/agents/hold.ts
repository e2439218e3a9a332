import type { Record as RecordMessage } from "../gen/onceward/v1/record_pb.ts";
import { type Claim, ClaimAbandoned, type RunningClaim } from "../run/claim.ts";
import { judgeUnder } from "../run/judgement.ts";
import { didNotHappen, type Resolve, unknown } from "../run/resolution.ts";

/** Returns a key's record; undefined if there is none. @throws OncewardError. */
export type RecordLookup = (key: string) => Promise<RecordMessage | undefined>;

/** The claim's checkpoint once the tool is about to begin. A tool's own checkpoint means the same. */
const STARTED = "onceward.tool-started";
/** The claim's checkpoint once the tool has thrown: the next attempt may run it. */
const FAILED = "onceward.tool-failed";
/**
 * Returns how a run finds out about an earlier attempt, whether the namespace's policy is HOLD or RECLAIM: the claim's checkpoint says
 * whether that one began.
 */
export function resolveHeld(resolve: Resolve | undefined): Resolve {
  return async (claim) => {
    const { checkpoint } = claim;
    if (checkpoint === undefined || checkpoint.name === FAILED) return didNotHappen();
    return (await resolve?.(claim)) ?? unknown();
  };
}

/** Runs a tool, and saves before and after it what `resolveHeld` needs to know. @throws the errors of `runTool`. */
export async function runHeld(claim: Claim, fn: (claim: Claim) => unknown): Promise<unknown> {
  if (!claim.guarded) return await runTool(claim, fn);
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
