import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Calls, ClaimInit } from "./calls.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { dateOf } from "./date-of.ts";
import { InternalError } from "../errors/catalogue.ts";
import { errorFromCall, isUnavailable } from "../errors/mapping.ts";
import { AmbiguousError, type ErrorClaim, InProgressError, type OncewardError } from "../errors/errors.ts";
import type {
  Ambiguous,
  Claimed,
  ClaimResponse,
  Completed,
  InProgress,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { MAX_WAIT_MS } from "../wire/limits.ts";
import { retrying } from "./retry.ts";
import { sleep } from "./sleep.ts";

/** What a run begins with: the claim, or what somebody else made of it. */
export type Acquired =
  | {
      readonly kind: "claimed";
      readonly claimed: Claimed;
      /** When the call that was granted the claim was sent, on the clock of `performance.now()`. */
      readonly sentAtMs: number;
    }
  | { readonly kind: "completed"; readonly completed: Completed; readonly expiresAt: Date }
  /** The service could not be asked, and the caller goes on all the same. */
  | { readonly kind: "unguarded"; readonly why: OncewardError };

/** How long a run may take to begin. */
export interface Patience {
  /** For another holder of the claim to finish. 0: not at all. */
  readonly waitMs: number;
  /** For the service to answer, over all attempts. */
  readonly timeoutMs: number;
  /** See `RunOptions`. */
  readonly onUnavailable: "throw" | "proceed";
}

/**
 * Claims, and waits for another holder, all under one claim id: a lost reply costs nothing, and never looks like a rival.
 *
 * @param onWaiting is told when it begins to wait.
 * @throws InProgressError, AmbiguousError, OncewardError; CLOSED once the client's waits are ended, and nothing is held.
 */
export async function acquire(
  calls: Calls,
  request: ClaimInit,
  patience: Patience,
  onWaiting: () => void,
): Promise<Acquired> {
  try {
    return await claimOrWait(calls, request, patience, onWaiting);
  } catch (error) {
    if (calls.closing.aborted && error === calls.closing.reason) await releaseIfGranted(calls, request);
    throw error;
  }
}

async function claimOrWait(
  calls: Calls,
  request: ClaimInit,
  patience: Patience,
  onWaiting: () => void,
): Promise<Acquired> {
  const startedAtMs = performance.now();
  const waitUntilMs = startedAtMs + patience.waitMs;
  let sentAtMs = startedAtMs;
  const ask = () =>
    retrying(
      () => {
        sentAtMs = performance.now();
        return calls.claim(request);
      },
      performance.now() + patience.timeoutMs,
      calls.closing,
    );

  let response: ClaimResponse;
  try {
    response = await ask();
  } catch (cause) {
    const why = errorFromCall(cause);
    // Only now: once the service has told of another holder, an outage does not make that untrue.
    if (patience.onUnavailable === "proceed" && couldNotBeAsked(why)) return { kind: "unguarded", why };
    throw why;
  }
  for (let waits = 0; ; waits++) {
    const { outcome } = response;
    switch (outcome.case) {
      case "claimed":
        return { kind: "claimed", claimed: outcome.value, sentAtMs };
      case "completed":
        return { kind: "completed", completed: outcome.value, expiresAt: dateOf(response.expiresAt) };
      case "ambiguous":
        throw ambiguous(outcome.value, nameOf(request));
      case "inProgress": {
        if (performance.now() >= waitUntilMs) throw inProgress(outcome.value, nameOf(request));
        if (waits === 0) onWaiting();
        const waited = await wait(calls, request, waitUntilMs, patience.timeoutMs);
        // A lease counts from sending, and the waiting call was sent long ago: the same claim again, freshly counted.
        response = waited.outcome.case === "claimed" ? await ask() : waited;
        break;
      }
      case undefined:
        throw new InternalError("The claim was answered with an outcome that is unknown here.");
    }
  }
}

/** A contended key was asked about, and it is just then that there are others. */
function couldNotBeAsked(error: OncewardError): boolean {
  return isUnavailable(error) && error.reason !== "RECORD_CONTENDED";
}

async function wait(
  calls: Calls,
  request: ClaimInit,
  waitUntilMs: number,
  timeoutMs: number,
): Promise<ClaimResponse> {
  const leftMs = () => Math.max(0, Math.min(MAX_WAIT_MS, Math.ceil(waitUntilMs - performance.now())));
  const ask = () => calls.claimWaiting(request, leftMs());
  const response = await retrying(ask, waitUntilMs + timeoutMs, calls.closing);
  const { outcome } = response;
  if (outcome.case === "inProgress" && leftMs() > 0)
    await sleep(Math.min(leftMs(), retryAfterMs(outcome.value)), calls.closing);
  return response;
}

/**
 * A claim may have been granted while its answer was no longer waited for, and would then keep others away until its lease
 * is over, or make the record ambiguous. Its own claim id finds it. Never rejects.
 */
async function releaseIfGranted(calls: Calls, request: ClaimInit): Promise<void> {
  try {
    const { outcome } = await calls.claim({ ...request, acceptAmbiguous: false });
    if (outcome.case !== "claimed") return;
    const { namespace = "", key = "" } = request;
    const reason = "The client was closed before the operation began.";
    await calls.release({ namespace, key, fencingToken: outcome.value.fencingToken, reason });
  } catch {
    // The service can't be told; the end of the lease will tell it.
  }
}

function retryAfterMs({ retryAfter }: InProgress): number {
  return retryAfter === undefined ? 0 : durationMs(retryAfter);
}

function nameOf({ namespace = "", key = "" }: ClaimInit): ErrorClaim {
  return { namespace, key, fencingToken: undefined };
}

function inProgress(holder: InProgress, claim: ErrorClaim): InProgressError {
  return new InProgressError({
    claim,
    owner: holder.owner,
    attempt: holder.attempt,
    leaseExpiresAt: dateOf(holder.leaseExpiresAt),
    retryDelayMs: retryAfterMs(holder),
  });
}

function ambiguous(last: Ambiguous, claim: ErrorClaim): AmbiguousError {
  return new AmbiguousError({
    claim,
    owner: last.owner,
    attempt: last.attempt,
    leaseExpiredAt: dateOf(last.leaseExpiredAt),
    checkpoint: readCheckpoint(last.checkpoint),
  });
}
