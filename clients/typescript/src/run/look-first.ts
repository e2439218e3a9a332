import { InProgressError } from "../errors/errors.ts";
import { ambiguous, refOf, type UnknownAttempt } from "./acquire.ts";
import { type Calls, dateOf } from "./calls.ts";
import type { Claim, RunningClaim } from "./claim.ts";
import { callWithin } from "./current-claim.ts";
import { describe } from "./describe-error.ts";
import { type Resolution, type Resolve, stillOpen } from "./resolution.ts";
import { encodeEffect, readBack } from "./result-codec.ts";
import type { AnyRunOptions } from "./run-options.ts";

/** An answer that lets the run continue. */
export type Found = Exclude<Resolution, { readonly kind: "unknown" }>;

/**
 * Calls `resolve` under a claim, and gives the record back unless it found out whether the effect happened. A value that can't be
 * stored and a time that is not valid are errors of `resolve`.
 *
 * @param onFound is called with the answer, or with what `resolve` threw, before the record is given back.
 * @throws AmbiguousError; the reason of the claim's signal, if it aborted and the effect is not known to have happened.
 */
export async function lookFirst(
  calls: Calls,
  claim: RunningClaim,
  { resolve, codec, describeError }: AnyRunOptions & { readonly resolve: Resolve },
  { last }: UnknownAttempt,
  onFound: (kind: Resolution["kind"], error?: unknown) => void,
): Promise<Found> {
  const look = async () => {
    const found = await resolve(claim);
    if (found?.kind === "happened")
      readBack(found.value, encodeEffect({ status: "fulfilled", value: found.value }, codec), codec);
    return found?.kind === "still-open" ? stillOpen(found) : found;
  };
  const [looked] = await Promise.allSettled([callWithin(calls, claim, look)]);
  const found: Partial<Resolution> | undefined = looked.status === "fulfilled" ? looked.value : undefined;
  const error = looked.status === "rejected" ? looked.reason : undefined;
  onFound(found?.kind ?? "unknown", claim.signal.aborted ? undefined : error);
  if (found?.kind === "happened") return found as Found;
  if (claim.signal.aborted) {
    await giveBack(claim, "interrupted");
    throw claim.signal.reason;
  }
  switch (found?.kind) {
    case "did-not-happen":
      return found as Found;
    case "still-open":
      await giveBack(claim, "still open");
      return found as Found;
    default:
      await giveBack(claim, error === undefined ? "unknown" : describe(error, describeError));
      throw ambiguous(last, refOf(claim), error);
  }
}

/** Returns the error of a run that can't wait until the outcome is known. */
export function stillOpenError(
  claim: Claim,
  { last }: UnknownAttempt,
  retryDelayMs: number,
): InProgressError {
  const { owner, attempt } = last;
  return new InProgressError({
    claim,
    owner,
    attempt,
    leaseExpiresAt: dateOf(last.leaseExpiredAt),
    retryDelayMs,
  });
}

/** Marks the begin of a function that may run. @throws OncewardError, or why the run ended; the record is then given back. */
export async function beginOrGiveBack(claim: RunningClaim): Promise<void> {
  try {
    await claim.begin();
    claim.signal.throwIfAborted();
  } catch (cause) {
    await giveBack(claim, "not begun");
    throw cause;
  }
}

/** Never rejects: a claim that can't be given back ends with its lease, and the record is ambiguous again, or lapsed. */
async function giveBack(claim: RunningClaim, reason: string): Promise<void> {
  await Promise.allSettled([claim.release(reason, true)]);
}
