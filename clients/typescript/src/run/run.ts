import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { OncewardError, TerminalError } from "../errors/errors.ts";
import { errorAbout, errorFromCall } from "../errors/mapping.ts";
import { fingerprintWithFiles } from "../keys/fingerprint.ts";
import { looksLikeTimestamp } from "../keys/keys.ts";
import { type Acquired, type AcquireOptions, acquire, isEnd, refOf } from "./acquire.ts";
import { type Calls, type ClaimInit, dateOf } from "./calls.ts";
import {
  type Claim,
  ClaimAbandoned,
  HeldClaim,
  RecordedClaim,
  type RunningClaim,
  UnguardedClaim,
} from "./claim.ts";
import { completeEffect } from "./complete-effect.ts";
import { callWithin, checkNotWithinItself } from "./current-claim.ts";
import { describe } from "./describe-error.ts";
import type { Observer } from "./events.ts";
import { GUARD_OFF, guardOff } from "./guard-switch.ts";
import { judgeUnder } from "./judgement.ts";
import { leaseNowMs } from "./lease-clock.ts";
import { beginOrGiveBack, type Found, lookFirst, stillOpenError } from "./look-first.ts";
import { OutcomeUnknownError } from "./outcome-unknown.ts";
import type { Resolution } from "./resolution.ts";
import { replay, replayOutcome } from "./result-codec.ts";
import { sleep } from "./retry.ts";
import {
  type AnyRunOptions,
  checkRunOptions,
  type ResolvedDefaults,
  type RunOptions,
  type RunResult,
} from "./run-options.ts";

/** Claims, runs the function and completes; or replays. Promises what `Onceward.run` promises. */
export async function runOnce(
  calls: Calls,
  defaults: ResolvedDefaults,
  options: AnyRunOptions,
  observer: Observer,
  fn: (claim: Claim) => unknown,
): Promise<RunResult<unknown>> {
  const { timeoutMs = defaults.timeoutMs } = options;
  const { classifyError = defaults.classifyError, onError = defaults.onError } = options;
  const waitUntilMs = performance.now() + waitMsOf(options, defaults);
  const continuedAtMs = options.claimId === undefined ? undefined : leaseNowMs();
  for (;;) {
    const waitMs = Math.max(0, waitUntilMs - performance.now());
    const acquired = await begin(calls, defaults, options, { waitMs, continuedAtMs }, observer);
    if (acquired.kind === "completed") return replayed(acquired, options, observer);
    const claim = openClaim(acquired, calls, { ...options, timeoutMs, classifyError, onError }, observer);
    try {
      const attempt = { calls, claim, acquired, options, defaults, observer, waitUntilMs };
      const found = await resolveFirst(attempt);
      if (found?.kind === "happened") {
        const effect = { status: "fulfilled", value: found.value } as const;
        return await complete(claim, effect, options, observer);
      }
      if (found?.kind !== "still-open") return await callFunction(attempt, fn);
      claim.end();
      observer.emit({ type: "waiting" });
      await pauseBeforeSearch(attempt, found.retryAfterMs);
    } finally {
      claim.end();
    }
  }
}

/** A claim of a run, and what the run needs to settle it. */
interface RunAttempt {
  readonly calls: Calls;
  readonly claim: RunningClaim;
  readonly acquired: Exclude<Acquired, { kind: "completed" }>;
  readonly options: AnyRunOptions;
  readonly defaults: ResolvedDefaults;
  readonly observer: Observer;
  /** Until when the run may wait for the outcome of an earlier attempt, on the clock of `performance.now()`. */
  readonly waitUntilMs: number;
}

/** Calls the function under its claim, and settles the claim by its outcome. */
async function callFunction(
  { calls, claim, acquired, options, defaults, observer }: RunAttempt,
  fn: (claim: Claim) => unknown,
): Promise<RunResult<unknown>> {
  const { describeError = defaults.describeError } = options;
  const [effect] = await Promise.allSettled([callWithin(calls, claim, fn)]);
  const marked = claim.unknownBecause;
  if (marked === undefined && effect.status === "fulfilled")
    return await complete(claim, effect, options, observer);
  const error = effect.status === "rejected" ? effect.reason : marked;
  const judgement = judgeUnder(claim, error);
  if (judgement instanceof TerminalError) {
    await complete(claim, { status: "rejected", reason: judgement }, options, observer);
    throw judgement;
  }
  if (acquired.kind === "recorded") observer.emit({ type: "failed", attempt: claim.attempt });
  else if (judgement === "release") await release(claim, describe(error, describeError), observer);
  else abandon(claim, marked ?? error, describe(error, describeError), observer);
  throw error;
}

/**
 * Asks `resolve` about an earlier attempt, if there is one whose outcome is unknown, and marks the begin of a function that may run.
 * Returns undefined without `resolve`.
 *
 * @throws as `lookFirst` and `Claim.begin`; InProgressError if the outcome is still open for longer than the run may wait.
 */
async function resolveFirst(attempt: RunAttempt): Promise<Found | undefined> {
  const { calls, claim, acquired, options, defaults, observer } = attempt;
  const { resolve, acceptAmbiguous, describeError = defaults.describeError } = options;
  if (resolve === undefined || acquired.kind !== "claimed") return undefined;
  const { unknown } = acquired;
  const onFound = (found: Resolution["kind"], error?: unknown) => {
    const event = { type: "resolved", attempt: claim.attempt, found } as const;
    if (error === undefined) observer.emit(event);
    // A guard answers "ambiguous": no one else would see why.
    else observer.emitWithWarning(event, "ONCEWARD_RESOLVE_FAILED", `resolve threw: ${error}`);
  };
  try {
    const found: Found =
      unknown === undefined || acceptAmbiguous
        ? { kind: "did-not-happen" }
        : await lookFirst(calls, claim, { ...options, resolve, describeError }, unknown, onFound);
    if (
      unknown &&
      found.kind === "still-open" &&
      performance.now() + found.retryAfterMs > attempt.waitUntilMs
    )
      throw stillOpenError(claim, unknown, found.retryAfterMs);
    if (found.kind === "did-not-happen") await beginOrGiveBack(claim);
    return found;
  } catch (cause) {
    const reason = isEnd(cause, options.signal) ? "ABORTED" : errorFromCall(cause).reason;
    observer.emit({ type: "not-run", reason });
    throw cause;
  }
}

/** Waits until `resolve` is asked again. @throws CLOSED; the reason of the run's signal. */
async function pauseBeforeSearch({ calls, options, observer }: RunAttempt, delayMs: number): Promise<void> {
  try {
    await sleep(delayMs, calls.closing, options.signal);
  } catch (cause) {
    observer.emit({ type: "not-run", reason: isEnd(cause, options.signal) ? "ABORTED" : "CLOSED" });
    throw cause;
  }
}

function waitMsOf({ onInProgress = "wait", waitMs }: RunOptions, defaults: ResolvedDefaults): number {
  return onInProgress === "throw" ? 0 : (waitMs ?? defaults.waitMs);
}

/** Checks the options and acquires the claim. @throws the errors of `acquire`, and InvalidRequestError. */
async function begin(
  calls: Calls,
  defaults: ResolvedDefaults,
  options: RunOptions,
  started: Pick<AcquireOptions, "waitMs" | "continuedAtMs">,
  observer: Observer,
): Promise<Acquired> {
  const { timeoutMs = defaults.timeoutMs, onUnavailable = "throw" } = options;
  return await observer.span("claim", async (add) => {
    try {
      checkRunOptions(options);
      if (looksLikeTimestamp(options.key)) {
        const message =
          "A key looks like the current time: if each delivery makes its own key, each runs the operation again";
        observer.emitWithWarning({ type: "timestamp-key" }, "ONCEWARD_TIMESTAMP_KEY", message);
      }
      options.signal?.throwIfAborted();
      const { leaseMs, signal } = options;
      const acquireOptions = { ...started, timeoutMs, leaseMs, onUnavailable, signal };
      const acquired = await acquireFor(calls, options, defaults, acquireOptions, observer);
      add({ "onceward.outcome": acquired.kind });
      return acquired;
    } catch (cause) {
      const reason = isEnd(cause, options.signal) ? "ABORTED" : errorFromCall(cause).reason;
      observer.emit({ type: "not-run", reason });
      throw cause;
    }
  });
}

/**
 * Acquires the claim. @throws the errors of `acquire`, and InvalidRequestError for the fingerprint or for a run within
 * itself; each names the claim.
 */
async function acquireFor(
  calls: Calls,
  options: RunOptions,
  { owner, guard }: ResolvedDefaults,
  acquireOptions: AcquireOptions,
  observer: Observer,
): Promise<Acquired> {
  try {
    checkNotWithinItself(calls, options);
    const request = await toRequest(options, owner);
    if (guard === "off-in-development") return { kind: "unguarded", error: guardOff() };
    return await acquire(calls, request, acquireOptions, () => observer.emit({ type: "waiting" }));
  } catch (cause) {
    throw cause instanceof OncewardError ? errorAbout(refOf(options), cause) : cause;
  }
}

async function toRequest(options: RunOptions, defaultOwner: string): Promise<ClaimInit> {
  const { namespace, key, fingerprint, leaseMs, owner = defaultOwner, resolve, marksBegin } = options;
  const acceptAmbiguous = options.acceptAmbiguous === true || resolve !== undefined;
  const { keyCreatedAt, claimId = crypto.randomUUID(), mode } = options;
  return {
    namespace,
    key,
    owner,
    acceptAmbiguous,
    claimId,
    ...(fingerprint !== undefined && { fingerprint: await fingerprintWithFiles(fingerprint) }),
    ...(mode === "at-most-once"
      ? { completion: {} }
      : {
          ...(leaseMs !== undefined && { lease: durationFromMs(leaseMs) }),
          ...(marksBegin && { marksBegin }),
        }),
    ...(keyCreatedAt !== undefined && { keyCreatedAt: timestampFromDate(keyCreatedAt) }),
  };
}

function replayed(
  { completed, expiresAt }: Extract<Acquired, { kind: "completed" }>,
  options: AnyRunOptions,
  observer: Observer,
): RunResult<unknown> {
  observer.emit({ type: "duplicate-skipped", outcome: replayOutcome(completed) });
  const { payload, contentType } = completed.result ?? {};
  // Of a claim that completed its key itself, no codec has stored a value.
  const isBare = options.mode !== undefined && payload?.byteLength === 0 && contentType === "";
  const value = replay(completed, isBare ? undefined : options.codec, refOf(options));
  return { value, replayed: true, guarded: true, completedAt: dateOf(completed.completedAt), expiresAt };
}

function openClaim(
  acquired: Exclude<Acquired, { kind: "completed" }>,
  calls: Calls,
  options: RunOptions & { readonly timeoutMs: number },
  observer: Observer,
): RunningClaim {
  if (acquired.kind === "unguarded") {
    const { reason, message } = acquired.error;
    const why = reason === GUARD_OFF ? "The guard is off" : "The service is unreachable";
    const text = `${why}, and a function runs without a claim: ${message}`;
    observer.emitWithWarning({ type: "unguarded", reason }, "ONCEWARD_UNGUARDED", text);
    return new UnguardedClaim(options);
  }
  if (acquired.kind === "recorded") {
    const claim = new RecordedClaim(options, acquired.completion);
    observer.emit({ type: "claimed", attempt: claim.attempt });
    return claim;
  }
  const { attempt } = acquired.claimed;
  observer.emit({ type: "claimed", attempt });
  return new HeldClaim(calls, options, acquired, options, ({ reason }) =>
    observer.emit({ type: "lease-lost", attempt, reason }),
  );
}

/** Stores the outcome. @throws CompletionError. */
async function complete<T>(
  claim: RunningClaim,
  effect: PromiseSettledResult<T>,
  options: Parameters<typeof completeEffect<T>>[2],
  observer: Observer,
): Promise<RunResult<T>> {
  const { attempt, guarded } = claim;
  return await observer.span("complete", async () => {
    try {
      const result = await completeEffect(claim, effect, options);
      if (guarded) observer.emit({ type: effect.status === "fulfilled" ? "completed" : "failed", attempt });
      return result;
    } catch (cause) {
      observer.emit({ type: "not-stored", attempt, reason: errorFromCall(cause).reason });
      throw cause;
    }
  });
}

/**
 * Stops the claim's heartbeats without completing or releasing it: the effect may have happened. The warning has no message but that of
 * an error that says so itself, because other messages may hold secrets.
 */
function abandon(claim: RunningClaim, error: unknown, description: string, observer: Observer): void {
  const why =
    error instanceof ClaimAbandoned || error instanceof OutcomeUnknownError
      ? error.message
      : `A function ended with ${description}, and may have had its effect.`;
  claim.abandon(error instanceof ClaimAbandoned ? error : new ClaimAbandoned(why));
  if (claim.guarded) {
    const event = { type: "abandoned", attempt: claim.attempt } as const;
    observer.emitWithWarning(event, "ONCEWARD_ABANDONED", why);
  }
}

/**
 * Releases the claim, and emits an event that says whether this succeeded. Never rejects: the caller must see the
 * function's own error, and a claim that can't be released ends with its lease.
 */
async function release(claim: RunningClaim, reason: string, observer: Observer): Promise<void> {
  const { attempt, guarded } = claim;
  try {
    await claim.release(reason);
    if (guarded) observer.emit({ type: "released", attempt });
  } catch (cause) {
    observer.emit({ type: "not-released", attempt, reason: errorFromCall(cause).reason });
  }
}
