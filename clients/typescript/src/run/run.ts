import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Acquired, acquire, type Patience } from "./acquire.ts";
import type { Calls, ClaimInit } from "./calls.ts";
import { ClaimAbandoned } from "../errors/claim-abandoned.ts";
import { terminalErrorOf } from "./classify.ts";
import type { Codec } from "./codec.ts";
import { completeEffect } from "./complete-effect.ts";
import { dateOf } from "./date-of.ts";
import { errorAbout, errorFromCall } from "../errors/mapping.ts";
import { type ErrorClaim, OncewardError } from "../errors/errors.ts";
import { fingerprintWithFiles } from "./fingerprint.ts";
import { type Claim, HeldClaim, type RunningClaim } from "./held-claim.ts";
import type { Observer } from "./observer.ts";
import { replay, replayOutcome } from "./result-codec.ts";
import {
  type AnyRunOptions,
  checkRunOptions,
  type ResolvedDefaults,
  type RunOptions,
} from "./run-options.ts";
import type { RunResult } from "./run-result.ts";
import { looksLikeTimestamp } from "./timestamp-key.ts";
import { UnguardedClaim } from "./unguarded-claim.ts";

/** Claims, runs, completes; or replays. The promises are those of `Onceward.run`. */
export async function runOnce(
  calls: Calls,
  defaults: ResolvedDefaults,
  options: AnyRunOptions,
  observer: Observer,
  fn: (claim: Claim) => unknown,
): Promise<RunResult<unknown>> {
  const { codec, timeoutMs = defaults.timeoutMs, classifyError = defaults.classifyError } = options;
  const acquired = await begin(calls, defaults, options, observer);
  if (acquired.kind === "completed") return replayed(acquired, options, observer);

  const claim = claimOf(acquired, calls, { ...options, timeoutMs }, observer);
  try {
    const [effect] = await Promise.allSettled([(async () => fn(claim))()]);
    if (effect.status === "fulfilled") return await complete(claim, effect, codec, observer);
    if (effect.reason instanceof ClaimAbandoned) throw abandon(claim, effect.reason, observer);
    const failure = terminalErrorOf(effect.reason, classifyError);
    if (failure === undefined) await release(claim, effect.reason, observer);
    else await complete(claim, { status: "rejected", reason: failure }, codec, observer);
    throw failure ?? effect.reason;
  } finally {
    claim.end();
  }
}

/** @throws what `acquire` throws, and InvalidRequestError. */
async function begin(
  calls: Calls,
  defaults: ResolvedDefaults,
  options: RunOptions,
  observer: Observer,
): Promise<Acquired> {
  const { timeoutMs = defaults.timeoutMs, onInProgress = "wait", onUnavailable = "throw" } = options;
  const waitMs = onInProgress === "throw" ? 0 : (options.waitMs ?? defaults.waitMs);
  return await observer.span("claim", async (add) => {
    try {
      checkRunOptions(options);
      if (looksLikeTimestamp(options.key)) {
        const message =
          "A key looks like a moment: if each delivery makes its own, each is an operation of its own";
        observer.alarm({ type: "timestamp-key" }, "ONCEWARD_TIMESTAMP_KEY", message);
      }
      const patience = { waitMs, timeoutMs, onUnavailable };
      const acquired = await claim(calls, options, defaults.owner, patience, observer);
      add({ "onceward.outcome": acquired.kind });
      return acquired;
    } catch (cause) {
      observer.tell({ type: "not-run", reason: errorFromCall(cause).reason });
      throw cause;
    }
  });
}

/** @throws what `acquire` throws, and InvalidRequestError for the fingerprint; each names the claim. */
async function claim(
  calls: Calls,
  options: RunOptions,
  defaultOwner: string,
  patience: Patience,
  observer: Observer,
): Promise<Acquired> {
  try {
    const request = await claimRequest(options, defaultOwner);
    return await acquire(calls, request, patience, () => observer.tell({ type: "waiting" }));
  } catch (cause) {
    throw cause instanceof OncewardError ? errorAbout(nameOf(options), cause) : cause;
  }
}

/** What an error is told of a run that was granted no claim. */
function nameOf({ namespace, key }: RunOptions): ErrorClaim {
  return { namespace, key, fencingToken: undefined };
}

async function claimRequest(options: RunOptions, defaultOwner: string): Promise<ClaimInit> {
  const { namespace, key, fingerprint, leaseMs, owner = defaultOwner, acceptAmbiguous = false } = options;
  return {
    namespace,
    key,
    owner,
    acceptAmbiguous,
    claimId: crypto.randomUUID(),
    ...(fingerprint !== undefined && { fingerprint: await fingerprintWithFiles(fingerprint) }),
    ...(leaseMs !== undefined && { lease: durationFromMs(leaseMs) }),
  };
}

function replayed(
  { completed, expiresAt }: Extract<Acquired, { kind: "completed" }>,
  options: AnyRunOptions,
  observer: Observer,
): RunResult<unknown> {
  observer.tell({ type: "duplicate-skipped", outcome: replayOutcome(completed) });
  const value = replay(completed, options.codec, nameOf(options));
  return { value, replayed: true, guarded: true, completedAt: dateOf(completed.completedAt), expiresAt };
}

function claimOf(
  acquired: Exclude<Acquired, { kind: "completed" }>,
  calls: Calls,
  options: RunOptions & { readonly timeoutMs: number },
  observer: Observer,
): RunningClaim {
  if (acquired.kind === "unguarded") {
    const message = `The service can't be asked, and a function runs without a claim: ${acquired.why.message}`;
    observer.alarm({ type: "unguarded", reason: acquired.why.reason }, "ONCEWARD_UNGUARDED", message);
    return new UnguardedClaim(options);
  }
  const { attempt } = acquired.claimed;
  observer.tell({ type: "claimed", attempt });
  return new HeldClaim(calls, options, acquired, options.timeoutMs, ({ reason }) =>
    observer.tell({ type: "lease-lost", attempt, reason }),
  );
}

/** Stores the outcome. @throws CompletionError. */
async function complete<T>(
  claim: RunningClaim,
  effect: PromiseSettledResult<T>,
  codec: Codec<T> | undefined,
  observer: Observer,
): Promise<RunResult<T>> {
  const { attempt, guarded } = claim;
  return await observer.span("complete", async () => {
    try {
      const result = await completeEffect(claim, effect, codec);
      if (guarded) observer.tell({ type: effect.status === "fulfilled" ? "completed" : "failed", attempt });
      return result;
    } catch (cause) {
      observer.tell({ type: "not-stored", attempt, reason: errorFromCall(cause).reason });
      throw cause;
    }
  });
}

/** Neither completes nor releases the claim. Returns what the caller is to be told. */
function abandon(claim: RunningClaim, why: ClaimAbandoned, observer: Observer): ClaimAbandoned {
  claim.abandon(why);
  if (claim.guarded) {
    observer.alarm({ type: "abandoned", attempt: claim.attempt }, "ONCEWARD_ABANDONED", why.message);
  }
  return why;
}

/**
 * Releases the claim, and tells the observer whether that succeeded. Never rejects: the function's own error is what the
 * caller must see, and a claim that can't be released ends with its lease.
 */
async function release(claim: RunningClaim, reason: unknown, observer: Observer): Promise<void> {
  const { attempt, guarded } = claim;
  try {
    await claim.release(reason instanceof Error ? `${reason.name}: ${reason.message}` : `${reason}`);
    if (guarded) observer.tell({ type: "released", attempt });
  } catch (cause) {
    observer.tell({ type: "not-released", attempt, reason: errorFromCall(cause).reason });
  }
}
