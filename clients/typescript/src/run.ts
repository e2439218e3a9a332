import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Acquired, acquire, type Patience } from "./acquire.ts";
import type { Calls } from "./calls.ts";
import { dateOf } from "./date-of.ts";
import { errorFromCall } from "./error-mapping.ts";
import { CompletionError, type OncewardError, TerminalError } from "./errors.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { type Claim, HeldClaim } from "./held-claim.ts";
import { decodeValue, encodeEffect, encodeWithoutValue, replay } from "./result-codec.ts";
import { checkRunOptions, type RunOptions } from "./run-options.ts";

/** What became of a run. */
export type RunResult<T> = {
  /** What the function returned, now or before. */
  readonly value: T;
  /** When the operation was completed, by the database's clock. */
  readonly completedAt: Date;
  /** When the key is forgotten: a retry after this moment is a new operation. */
  readonly expiresAt: Date;
} & (
  | { readonly replayed: true }
  | {
      readonly replayed: false;
      /** 1 for the key's first claim, one more for each that took over. */
      readonly attempt: number;
      readonly fencingToken: bigint;
    }
);

/** What a run needs besides its options: the defaults of the client it belongs to. */
export type RunDefaults = Patience & { readonly owner: string };

/** Claims, runs, completes; or replays. The promises are those of `Onceward.run`. */
export async function runOnce<T>(
  calls: Calls,
  defaults: RunDefaults,
  options: RunOptions,
  fn: (claim: Claim) => T | Promise<T>,
): Promise<RunResult<T>> {
  checkRunOptions(options);
  const { waitMs = defaults.waitMs, timeoutMs = defaults.timeoutMs } = options;
  const acquired = await acquire(calls, claimRequest(options, defaults.owner), { waitMs, timeoutMs });
  if (acquired.kind === "completed") return replayed(acquired);

  const claim = new HeldClaim(calls, options, acquired, timeoutMs);
  try {
    const [effect] = await Promise.allSettled([(async () => fn(claim))()]);
    if (effect.status === "fulfilled") return await completed(claim, effect);
    if (effect.reason instanceof TerminalError) await completed(claim, effect);
    else await release(claim, effect.reason);
    throw effect.reason;
  } finally {
    claim.lease.end();
  }
}

function claimRequest(options: RunOptions, defaultOwner: string) {
  const { namespace, key, fingerprint, leaseMs, owner = defaultOwner, acceptAmbiguous = false } = options;
  return {
    namespace,
    key,
    owner,
    acceptAmbiguous,
    claimId: randomUUID(),
    ...(fingerprint !== undefined && { fingerprint: fingerprintOf(fingerprint) }),
    ...(leaseMs !== undefined && { lease: durationFromMs(leaseMs) }),
  };
}

function replayed<T>({ completed, expiresAt }: Extract<Acquired, { kind: "completed" }>): RunResult<T> {
  const value = replay(completed) as T;
  return { value, replayed: true, completedAt: dateOf(completed.completedAt), expiresAt };
}

/** Stores the outcome; the value is what a repeat will get. @throws CompletionError. */
async function completed<T>(claim: HeldClaim, effect: PromiseSettledResult<T>): Promise<RunResult<T>> {
  try {
    const result = encodeEffect(effect);
    const { completedAt, expiresAt } = await claim.complete(result);
    return {
      value: decodeValue(result) as T,
      replayed: false,
      attempt: claim.attempt,
      fencingToken: claim.fencingToken,
      completedAt: dateOf(completedAt),
      expiresAt: dateOf(expiresAt),
    };
  } catch (cause) {
    const why = errorFromCall(cause);
    const unstorable = why.reason === "RESULT_NOT_JSON" || why.reason === "RESULT_TOO_LARGE";
    throw new CompletionError(effect, unstorable ? await completeWithoutValue(claim, effect, why) : why);
  }
}

/** The effect can't be undone, so it is stored as done, without its value. Returns what the caller is to be told. */
async function completeWithoutValue(
  claim: HeldClaim,
  effect: PromiseSettledResult<unknown>,
  why: OncewardError,
): Promise<OncewardError> {
  try {
    await claim.complete(encodeWithoutValue(effect, why));
    return why;
  } catch (cause) {
    return errorFromCall(cause);
  }
}

/** The function's own error is what the caller must see; that the release failed would only hide it. */
async function release(claim: HeldClaim, reason: unknown): Promise<void> {
  try {
    await claim.release(reason instanceof Error ? `${reason.name}: ${reason.message}` : `${reason}`);
  } catch {
    // The lease runs out by itself.
  }
}
