import { create } from "@bufbuild/protobuf";
import { durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { AmbiguousError, type ClaimRef, InProgressError, OncewardError } from "../errors/errors.ts";
import { errorFromCall, isUnreachable } from "../errors/mapping.ts";
import {
  type Ambiguous,
  type Claimed,
  type ClaimResponse,
  type Completed,
  type CompleteResponse,
  CompleteResponseSchema,
  type InProgress,
  type Recorded,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { MAX_WAIT_MS } from "../wire/limits.ts";
import { type Calls, type ClaimInit, dateOf } from "./calls.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { leaseNowMs } from "./lease-clock.ts";
import { PendingClaims, releaseUnusedClaim } from "./pending-claims.ts";
import { alwaysLate, type Granted, MAX_LATE_ANSWERS, renewIfLate } from "./renew.ts";
import { retrying, sleep } from "./retry.ts";

/** How a run begins. */
export type Acquired =
  /** The lease lasts: the function may begin at once, and at no later time without checking the lease again. */
  | ({ readonly kind: "claimed"; readonly unknown: UnknownAttempt | undefined } & Granted)
  | { readonly kind: "completed"; readonly completed: Completed; readonly expiresAt: Date }
  /** The claim has completed the key itself, as the request's `completion` asked. */
  | { readonly kind: "recorded"; readonly completion: CompleteResponse }
  /** The service is unreachable, and the function runs without a claim. */
  | { readonly kind: "unguarded"; readonly error: OncewardError };

/** An earlier attempt whose outcome is unknown, and how long that was before `atMs` on the clock of `leaseNowMs`. */
export interface UnknownAttempt {
  readonly last: Ambiguous;
  readonly forMs: number;
  readonly atMs: number;
}

/** Returns the attempt whose outcome is unknown; undefined without one. */
function unknownAttemptOf(
  claimed: Claimed,
  serverTime: Timestamp | undefined,
  continuedAtMs: number | undefined,
): UnknownAttempt | undefined {
  const { unknown, checkpoint } = claimed;
  if (unknown?.leaseExpiredAt === undefined || serverTime === undefined) return undefined;
  const last = { ...unknown, checkpoint };
  if (continuedAtMs !== undefined) return { last, forMs: 0, atMs: continuedAtMs };
  const forMs = Math.max(0, timestampMs(serverTime) - timestampMs(unknown.leaseExpiredAt));
  return { last, forMs, atMs: leaseNowMs() };
}

/** How long a run may take to begin. */
export interface AcquireOptions {
  /** How long to wait for another holder of the claim to finish. 0: not at all. */
  readonly waitMs: number;
  /** How long the service may take to answer, over all attempts. */
  readonly timeoutMs: number;
  /** See `RunOptions`. */
  readonly leaseMs?: number | undefined;
  /** When the run began, on the clock of `leaseNowMs`, if its claim id is the caller's: an effect may have begun under it before. */
  readonly continuedAtMs?: number | undefined;
  /** See `RunOptions`. */
  readonly onUnavailable: "throw" | "proceed";
  /** See `RunOptions`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Claims, and waits for another holder, always under one claim id: after a lost reply, the repeated call gets the
 * same claim. A claim whose answer comes after its lease is renewed, or claimed again.
 *
 * @param onWaiting is called when the wait begins.
 * @throws InProgressError, AmbiguousError, OncewardError; at once CLOSED if the client closes in the meantime, or the
 *   reason of the caller's signal. After every rejection, a claim that was granted nevertheless is released in the
 *   background, unless it has the caller's id: then the effect may have begun in an earlier process.
 */
export async function acquire(
  calls: Calls,
  request: ClaimInit,
  options: AcquireOptions,
  onWaiting: () => void,
): Promise<Acquired> {
  const claims = new PendingClaims();
  try {
    return await claimOrWait(calls, request, options, claims, onWaiting);
  } catch (error) {
    if (claims.mayBeHeld && request.completion === undefined && options.continuedAtMs === undefined)
      calls.inBackground(() => releaseUnusedClaim(calls, request, claims, options.leaseMs));
    throw error;
  }
}

/** Returns whether the error is the reason of a signal that has aborted. */
export function isEnd(error: unknown, ...signals: readonly (AbortSignal | undefined)[]): boolean {
  return signals.some((signal) => signal?.aborted && signal.reason === error);
}

async function claimOrWait(
  calls: Calls,
  request: ClaimInit,
  options: AcquireOptions,
  claims: PendingClaims,
  onWaiting: () => void,
): Promise<Acquired> {
  const { signal } = options;
  const startedAtMs = performance.now();
  const waitUntilMs = startedAtMs + options.waitMs;
  let sentAtMs = leaseNowMs();
  let lostClaims = 0;
  const send = () =>
    retrying(
      () => {
        sentAtMs = leaseNowMs();
        return calls.orEnd(claims.sent(calls.claim(request)), signal);
      },
      performance.now() + options.timeoutMs,
      calls.closing,
      signal,
    );

  let response: ClaimResponse;
  try {
    response = await send();
  } catch (cause) {
    if (isEnd(cause, calls.closing, signal)) throw cause;
    const error = errorFromCall(cause);
    // Only for the first call: once the service has named another holder, an outage doesn't make that untrue.
    if (options.onUnavailable === "proceed" && isUnreachable(error)) return { kind: "unguarded", error };
    throw error;
  }
  for (let waits = 0; ; waits++) {
    const { outcome } = response;
    switch (outcome.case) {
      case "claimed": {
        const answer = { claimed: outcome.value, sentAtMs };
        const unknown = unknownAttemptOf(outcome.value, response.serverTime, options.continuedAtMs);
        const granted = await renewIfLate(calls, refOf(request), answer, options.timeoutMs, signal);
        if (granted !== undefined) return { kind: "claimed", unknown, ...granted };
        if (++lostClaims > MAX_LATE_ANSWERS) throw alwaysLate();
        response = await send();
        break;
      }
      case "completed":
        return { kind: "completed", completed: outcome.value, expiresAt: dateOf(response.expiresAt) };
      case "recorded":
        return { kind: "recorded", completion: completionOf(outcome.value, response) };
      case "ambiguous":
        throw ambiguous(outcome.value, refOf(request));
      case "inProgress": {
        if (performance.now() >= waitUntilMs) throw inProgress(outcome.value, refOf(request));
        if (waits === 0) onWaiting();
        const waited = await wait(calls, request, waitUntilMs, options, claims);
        // A lease counts from when its call was sent, and the waiting call was sent long ago. The same claim again
        // returns a lease that counts from now.
        response = waited.outcome.case === "claimed" ? await send() : waited;
        break;
      }
      case undefined:
        throw new OncewardError(
          "INTERNAL",
          "The claim was answered with an outcome that this client does not know.",
        );
    }
  }
}

async function wait(
  calls: Calls,
  request: ClaimInit,
  waitUntilMs: number,
  { timeoutMs, signal }: AcquireOptions,
  claims: PendingClaims,
): Promise<ClaimResponse> {
  const leftMs = () => Math.max(0, Math.min(MAX_WAIT_MS, Math.ceil(waitUntilMs - performance.now())));
  const claimWaiting = () => claims.sent(calls.claimWaiting(request, leftMs(), signal));
  const response = await retrying(claimWaiting, waitUntilMs + timeoutMs, calls.closing, signal);
  const { outcome } = response;
  if (outcome.case === "inProgress" && leftMs() > 0)
    await sleep(Math.min(leftMs(), retryAfterMs(outcome.value)), calls.closing, signal);
  return response;
}

function retryAfterMs({ retryAfter }: InProgress): number {
  return retryAfter === undefined ? 0 : durationMs(retryAfter);
}

/** Returns how errors name a run that was granted no claim. */
export function refOf({ namespace = "", key = "" }: Pick<ClaimInit, "namespace" | "key">): ClaimRef {
  return { namespace, key, fencingToken: undefined };
}

/** Returns what a Complete of the key would have been answered. */
function completionOf({ completedAt }: Recorded, { expiresAt }: ClaimResponse): CompleteResponse {
  return create(CompleteResponseSchema, {
    ...(completedAt && { completedAt }),
    ...(expiresAt && { expiresAt }),
  });
}

function inProgress(holder: InProgress, claim: ClaimRef): InProgressError {
  return new InProgressError({
    claim,
    owner: holder.owner,
    attempt: holder.attempt,
    leaseExpiresAt: dateOf(holder.leaseExpiresAt),
    retryDelayMs: retryAfterMs(holder),
  });
}

/** Returns the error of a run that ends because the outcome of an earlier attempt is unknown. */
export function ambiguous(last: Ambiguous, claim: ClaimRef, cause?: unknown): AmbiguousError {
  return new AmbiguousError({
    claim,
    cause,
    owner: last.owner,
    attempt: last.attempt,
    leaseExpiredAt: dateOf(last.leaseExpiredAt),
    checkpoint: readCheckpoint(last.checkpoint),
  });
}
