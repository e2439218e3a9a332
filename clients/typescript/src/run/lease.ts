import { durationMs } from "@bufbuild/protobuf/wkt";
import { errorFromCall } from "../errors/mapping.ts";
import { type ErrorClaim, OncewardError } from "../errors/errors.ts";
import type { ExtendLeaseResponse } from "../gen/onceward/v1/idempotency_pb.ts";

/** Two heartbeats may fail before the lease is in danger. */
const HEARTBEATS_PER_LEASE = 3;
/** A tenth of the lease, for clocks that run differently and for whoever is to stop in time; more helps nobody. */
const MARGIN_FRACTION = 0.1;
const MAX_MARGIN_MS = 1000;
/** After a failed heartbeat. */
const RETRY_FRACTION = 0.1;
/** However little is left of a lease, heartbeats come one after another. */
const MIN_INTERVAL_MS = 20;

/**
 * Keeps a claim's lease alive by heartbeats, and says when it is lost.
 *
 * What the service grants is counted from when the call was *sent*, minus a margin, so that this side never believes in
 * a lease that has run out on the other. An event loop that stalls finds out on its first turn afterwards.
 */
export class Lease {
  readonly #extend: () => Promise<ExtendLeaseResponse>;
  readonly #onLost: (why: OncewardError) => void;
  readonly #claim: ErrorClaim | undefined;
  #lengthMs = 0;
  #endsAtMs = 0;
  #nextHeartbeatAtMs = 0;
  #heartbeating = false;
  #ended = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lost: OncewardError | undefined;
  #abort: AbortController | undefined;

  /**
   * @param extend makes one ExtendLease call.
   * @param onLost is told once, as soon as it is noticed.
   * @param claim is what the error of a lost lease names.
   */
  constructor(
    extend: () => Promise<ExtendLeaseResponse>,
    onLost: (why: OncewardError) => void = () => {},
    claim?: ErrorClaim,
  ) {
    this.#extend = extend;
    this.#onLost = onLost;
    this.#claim = claim;
  }

  /** When the lease ends if nothing prolongs it, margin deducted, on the clock of `performance.now()`. */
  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  /** As it was last granted. */
  get lengthMs(): number {
    return this.#lengthMs;
  }

  /** Aborts when the lease is lost, with an OncewardError LEASE_LOST or what the service refused the heartbeat with. */
  get signal(): AbortSignal {
    // Made on demand: most functions never ask.
    this.#abort ??= new AbortController();
    if (this.#lost !== undefined) this.#abort.abort(this.#lost);
    return this.#abort.signal;
  }

  /** The service granted `remainingMs`, in answer to a call sent at `sentAtMs`. The first time starts the heartbeats. */
  granted(sentAtMs: number, remainingMs: number): void {
    this.#lengthMs = remainingMs;
    const marginMs = Math.min(MAX_MARGIN_MS, remainingMs * MARGIN_FRACTION);
    // Replies may overtake each other; no call shortens a lease.
    this.#endsAtMs = Math.max(this.#endsAtMs, sentAtMs + remainingMs - marginMs);
    this.#nextHeartbeatAtMs = sentAtMs + Math.max(MIN_INTERVAL_MS, remainingMs / HEARTBEATS_PER_LEASE);
    this.#arm();
  }

  /** Ends the heartbeats: the claim is completed or released. The signal stays as it is. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  /** Ends the heartbeats without an outcome: the lease runs out, and the signal aborts now, before others may begin. */
  abandon(why: OncewardError): void {
    this.end();
    this.#lose(why);
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#ended) return;
    const heartbeatAtMs = this.#heartbeating ? Number.POSITIVE_INFINITY : this.#nextHeartbeatAtMs;
    const lossAtMs = this.#lost === undefined ? this.#endsAtMs : Number.POSITIVE_INFINITY;
    const nextAtMs = Math.min(heartbeatAtMs, lossAtMs);
    if (nextAtMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, Math.ceil(nextAtMs - performance.now())));
    // A process with nothing else left to do has no effect to guard.
    // (Browsers' timers are numbers, and hold nothing up.)
    this.#timer.unref?.();
  }

  #tick(): void {
    const nowMs = performance.now();
    if (nowMs >= this.#endsAtMs) {
      const message = "The lease ran out before a heartbeat was answered.";
      this.#lose(new OncewardError("LEASE_LOST", message, { claim: this.#claim }));
    }
    if (nowMs >= this.#nextHeartbeatAtMs && !this.#heartbeating) void this.#heartbeat(nowMs);
    this.#arm();
  }

  // Also after the loss: as long as nobody has taken over, a heartbeat revives the lease and keeps others away.
  async #heartbeat(sentAtMs: number): Promise<void> {
    this.#heartbeating = true;
    try {
      const { leaseRemaining } = await this.#extend();
      this.#heartbeating = false;
      this.granted(sentAtMs, leaseRemaining === undefined ? 0 : durationMs(leaseRemaining));
    } catch (cause) {
      this.#heartbeating = false;
      // Completed or released meanwhile: whatever the answer was, it means nothing any more.
      if (this.#ended) return;
      const error = errorFromCall(cause);
      if (isOver(error)) {
        this.end();
        this.#lose(error);
        return;
      }
      this.#nextHeartbeatAtMs =
        performance.now() + Math.max(MIN_INTERVAL_MS, this.#lengthMs * RETRY_FRACTION);
      this.#arm();
    }
  }

  #lose(why: OncewardError): void {
    if (this.#lost !== undefined) return;
    this.#lost = why;
    this.#abort?.abort(why);
    this.#onLost(why);
  }
}

/** Whether the claim is no longer ours to prolong. */
function isOver({ reason }: OncewardError): boolean {
  switch (reason) {
    case "CLAIM_SUPERSEDED":
    case "ALREADY_COMPLETED":
    case "ALREADY_RELEASED":
    case "RECORD_NOT_FOUND":
    // The client was closed: no heartbeat will be sent.
    case "CLOSED":
      return true;
    default:
      return false;
  }
}
