import { errorFromCall, isToBeRepeated, mayHaveHappened } from "../errors/mapping.ts";
import type { ClaimResponse } from "../gen/onceward/v1/idempotency_pb.ts";
import { Record_State } from "../gen/onceward/v1/record_pb.ts";
import { DEFAULT_LEASE_MS } from "../wire/limits.ts";
import type { Calls, ClaimInit } from "./calls.ts";
import { retryDelayMs } from "./retry.ts";

/** The Claim calls of one run, which all have one claim id: whether the service may hold a claim for it. */
export class PendingClaims {
  readonly #pending = new Set<Promise<unknown>>();
  #mayBeHeld = false;

  /** Notes a call. Returns it. */
  sent(call: Promise<ClaimResponse>): Promise<ClaimResponse> {
    this.#pending.add(call);
    const settled = () => this.#pending.delete(call);
    call.then(
      ({ outcome }) => {
        settled();
        // The answer is about all earlier calls, too: their claim id is the same.
        this.#mayBeHeld = outcome.case === "claimed";
      },
      (cause) => {
        settled();
        // A definite refusal had no effect, and says nothing about earlier calls.
        if (mayHaveHappened(errorFromCall(cause))) this.#mayBeHeld = true;
      },
    );
    return call;
  }

  /** Whether a call was granted, or may have been: its answer is lost, or not there yet. */
  get mayBeHeld(): boolean {
    return this.#mayBeHeld || this.#pending.size > 0;
  }

  /** Resolves once every call is answered or has failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }
}

/**
 * Releases the claim of a run whose function will not begin, or gives back a record whose outcome is unknown. Otherwise it would
 * block other callers until its lease expires, or make the record ambiguous although nothing ran. The request's claim id identifies
 * the claim. Retries until the lease, by default the service's, is over; while the client closes, makes one more attempt. Never
 * rejects.
 */
export async function releaseUnusedClaim(
  calls: Calls,
  request: ClaimInit,
  claims: PendingClaims,
  leaseMs = DEFAULT_LEASE_MS,
): Promise<void> {
  // Otherwise the last call might be granted after the release.
  await claims.settled();
  if (!claims.mayBeHeld) return;
  const giveUpAtMs = performance.now() + leaseMs;
  for (let failures = 0; ; failures++) {
    const isLast = calls.closing.aborted;
    try {
      await release(calls, request);
      return;
    } catch (cause) {
      const error = errorFromCall(cause);
      const delayMs = retryDelayMs(failures, error.retryDelayMs ?? 0);
      if (isLast || !isToBeRepeated(error) || performance.now() + delayMs > giveUpAtMs) return;
      await pause(delayMs, calls.closing);
    }
  }
}

async function release(calls: Calls, request: ClaimInit): Promise<void> {
  const { namespace = "", key = "" } = request;
  const { record } = await calls.lookup({ namespace, key });
  // Another Claim returns this run's own one. Without one it would be granted, and keep the next delivery away.
  if (record?.state !== Record_State.IN_PROGRESS || record.owner !== request.owner) return;
  const { outcome } = await calls.claim({ ...request, acceptAmbiguous: false });
  if (outcome.case !== "claimed") return;
  const reason = "The caller left before the operation began.";
  const { fencingToken } = outcome.value;
  await calls.release({ namespace, key, fencingToken, reason, giveBack: true });
}

/** Resolves after `delayMs`, or as soon as the signal aborts. Does not keep a process alive that has nothing else to do. */
function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, delayMs);
    // In browsers timers are numbers without `unref`.
    timer.unref?.();
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
