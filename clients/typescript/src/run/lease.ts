import { durationMs } from "@bufbuild/protobuf/wkt";
import { type ClaimRef, OncewardError } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import { factsOf } from "../errors/reasons.ts";
import type { ExtendLeaseResponse } from "../gen/onceward/v1/idempotency_pb.ts";
import { leaseNowMs } from "./lease-clock.ts";

/** Two heartbeats may fail before the lease is at risk. */
const HEARTBEATS_PER_LEASE = 3;
/** A tenth of the lease, for clock drift and for the function to stop in time; more than a second is of no use. */
const MARGIN_FRACTION = 0.1;
const MAX_MARGIN_MS = 1000;
/** The delay after a failed heartbeat, as a fraction of the lease. */
const RETRY_FRACTION = 0.1;
/**
 * A heartbeat without an answer within this fraction of the lease is repeated, on another connection, while the lease lasts; at least
 * a second, which a busy service may take.
 */
const ANSWER_FRACTION = 0.25;
const MIN_ANSWER_MS = 1000;
/** The shortest interval between heartbeats, even if little is left of a lease. */
const MIN_INTERVAL_MS = 20;
/** Timers stop while a machine is suspended. So a lease that ended meanwhile is noticed within this time. */
const MAX_LOOK_INTERVAL_MS = 1000;

/**
 * Returns when a lease ends that was granted to a call sent at `sentAtMs`, minus the margin, on the clock of
 * `leaseNowMs`. The service counts from the arrival of the call, which is later.
 */
export function leaseEndsAtMs(sentAtMs: number, remainingMs: number): number {
  return sentAtMs + remainingMs - Math.min(MAX_MARGIN_MS, remainingMs * MARGIN_FRACTION);
}

/**
 * Keeps a claim's lease alive by heartbeats, and reports its loss.
 *
 * A granted lease counts from when its call was *sent*, minus a margin, so that this process never relies on a lease
 * that has expired at the service. After an event loop stall, the loss is noticed on the first turn; after a suspension
 * of the machine, within a second.
 */
export class Lease {
  readonly #extend: (timeoutMs: number) => Promise<ExtendLeaseResponse>;
  readonly #onLost: (error: OncewardError) => void;
  readonly #claim: ClaimRef | undefined;
  #lengthMs = 0;
  #endsAtMs = 0;
  #nextHeartbeatAtMs = 0;
  #heartbeating = false;
  #ended = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lost: OncewardError | undefined;
  #callersEnd: { readonly reason: unknown } | undefined;
  #abort: AbortController | undefined;

  /**
   * @param extend makes one ExtendLease call, which may be without an answer for so long.
   * @param onLost is called once, as soon as the loss is noticed.
   * @param claim is named by the error of a lost lease.
   */
  constructor(
    extend: (timeoutMs: number) => Promise<ExtendLeaseResponse>,
    onLost: (error: OncewardError) => void = () => {},
    claim?: ClaimRef,
  ) {
    this.#extend = extend;
    this.#onLost = onLost;
    this.#claim = claim;
  }

  /** When the lease ends unless it is prolonged, minus the margin, on the clock of `leaseNowMs`. */
  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  /** Whether another holder may have taken over: an effect must not begin before the lease is renewed. */
  get isOver(): boolean {
    return leaseNowMs() >= this.#endsAtMs;
  }

  /** The lease's length, as last granted. */
  get lengthMs(): number {
    return this.#lengthMs;
  }

  /**
   * Aborts when the lease is lost, with an OncewardError LEASE_LOST or the error with which a heartbeat was refused.
   */
  get signal(): AbortSignal {
    // Made on demand: most functions never use it.
    this.#abort ??= new AbortController();
    if (!this.#ended && this.isOver) this.#expire();
    if (this.#lost !== undefined) this.#abort.abort(this.#lost);
    else if (this.#callersEnd !== undefined) this.#abort.abort(this.#callersEnd.reason);
    return this.#abort.signal;
  }

  /**
   * Notes that the service granted `remainingMs` to a call sent at `sentAtMs`. The first grant starts the heartbeats.
   */
  granted(sentAtMs: number, remainingMs: number): void {
    this.#lengthMs = remainingMs;
    // Replies may overtake each other; no call shortens a lease.
    this.#endsAtMs = Math.max(this.#endsAtMs, leaseEndsAtMs(sentAtMs, remainingMs));
    this.#nextHeartbeatAtMs = sentAtMs + Math.max(MIN_INTERVAL_MS, remainingMs / HEARTBEATS_PER_LEASE);
    this.#arm();
  }

  /** Aborts the signal with the reason of the run's caller. The heartbeats continue: the function may still have its effect. */
  interrupt(reason: unknown): void {
    this.#callersEnd = { reason };
    this.#abort?.abort(reason);
  }

  /** Stops the heartbeats: the claim is completed or released. Does not abort the signal. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  /** Stops the heartbeats without an outcome: the lease will expire. Aborts the signal now, before others may start. */
  abandon(error: OncewardError): void {
    this.end();
    this.#lose(error);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#ended) return;
    const heartbeatAtMs = this.#heartbeating ? Number.POSITIVE_INFINITY : this.#nextHeartbeatAtMs;
    const lossAtMs = this.#lost === undefined ? this.#endsAtMs : Number.POSITIVE_INFINITY;
    const nextAtMs = Math.min(heartbeatAtMs, lossAtMs);
    if (nextAtMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.max(0, Math.ceil(nextAtMs - leaseNowMs()));
    this.#timer = setTimeout(() => this.#tick(), Math.min(delayMs, MAX_LOOK_INTERVAL_MS));
    // A process with nothing else to do has no effect to guard. (In browsers timers are numbers without `unref`.)
    this.#timer.unref?.();
  }

  #tick(): void {
    const nowMs = leaseNowMs();
    if (nowMs >= this.#endsAtMs) this.#expire();
    if (nowMs >= this.#nextHeartbeatAtMs && !this.#heartbeating) void this.#heartbeat(nowMs);
    this.#arm();
  }

  // Also after the loss: until another holder has taken over, a heartbeat renews the lease and keeps others away.
  async #heartbeat(sentAtMs: number): Promise<void> {
    this.#heartbeating = true;
    try {
      const { leaseRemaining } = await this.#extend(
        Math.max(MIN_ANSWER_MS, this.#lengthMs * ANSWER_FRACTION),
      );
      this.#heartbeating = false;
      this.granted(sentAtMs, leaseRemaining === undefined ? 0 : durationMs(leaseRemaining));
    } catch (cause) {
      this.#heartbeating = false;
      // The claim was completed or released in the meantime, so the answer no longer matters.
      if (this.#ended) return;
      const error = errorFromCall(cause);
      if (isClaimGone(error)) {
        this.end();
        this.#lose(error);
        return;
      }
      this.#nextHeartbeatAtMs = leaseNowMs() + Math.max(MIN_INTERVAL_MS, this.#lengthMs * RETRY_FRACTION);
      this.#arm();
    }
  }

  #expire(): void {
    if (this.#lost === undefined) this.#lose(leaseLost(this.#claim));
  }

  #lose(error: OncewardError): void {
    if (this.#lost !== undefined) return;
    this.#lost = error;
    this.#abort?.abort(error);
    this.#onLost(error);
  }
}

/** Returns the error of a lease that expired before it was renewed. */
export function leaseLost(claim: ClaimRef | undefined): OncewardError {
  return new OncewardError("LEASE_LOST", "The lease expired before a heartbeat was answered.", { claim });
}

/** Returns whether no further heartbeat can prolong the claim. */
export function isClaimGone({ reason }: OncewardError): boolean {
  // Of a closed client, no heartbeat will be sent.
  return reason === "CLOSED" || factsOf(reason)?.claimIsOver === true;
}
