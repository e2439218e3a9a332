import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Calls } from "./calls.ts";
import { readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import { deriveKey } from "./derive-key.ts";
import { errorAbout, errorFromCall } from "../errors/mapping.ts";
import type { OncewardError, SavedCheckpoint } from "../errors/errors.ts";
import type { Claimed, CompleteResponse, ExtendLeaseResponse } from "../gen/onceward/v1/idempotency_pb.ts";
import type { CheckpointSchema, ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { Lease } from "./lease.ts";
import { MAX_RELEASE_REASON_BYTES } from "../wire/limits.ts";
import { retrying } from "./retry.ts";
import { truncateUtf8 } from "../errors/violations.ts";

/** What the guarded function gets: the claim it runs under. */
export interface Claim {
  /** False where the service could not be asked and `onUnavailable` is "proceed": nobody keeps others away. */
  readonly guarded: boolean;
  readonly namespace: string;
  readonly key: string;
  /**
   * Strictly increasing per key for ever. Give it to a downstream that can compare numbers, so that it refuses a holder
   * that was stalled and superseded. 0 if not guarded, which is older than every claim.
   */
  readonly fencingToken: bigint;
  /**
   * 1 for the key's first claim, one more for each that took over. Above 1, an earlier effect may have happened; 0 if not
   * guarded, when nobody knows.
   */
  readonly attempt: number;
  /** How far an earlier attempt came; undefined if none saved a checkpoint. */
  readonly checkpoint: SavedCheckpoint | undefined;
  /** Aborts when the lease is lost: somebody else may begin, so stop what you can. Never, if not guarded. */
  readonly signal: AbortSignal;
  /**
   * Saves how far this attempt has come, for whoever has to take over, and prolongs the lease. Replaces the last one.
   * Does nothing if not guarded.
   *
   * @param name 1-128 bytes, such as "charged".
   * @param state a JSON value of at most 16 KiB, or nothing.
   * @throws OncewardError; with CLAIM_SUPERSEDED somebody has taken over.
   */
  saveCheckpoint(name: string, state?: unknown): Promise<void>;
  /**
   * An idempotency key for a downstream: opaque, 43 characters, the same on every attempt, another for every label. A
   * downstream that honours such keys absorbs the repeat that a crash makes necessary.
   */
  deriveKey(label: string): string;
}

/** A claim as `run` has it: what the function sees of it, and how it ends. */
export interface RunningClaim extends Claim {
  /** Stores the outcome; undefined where nobody takes it. @throws OncewardError. */
  complete(result: MessageInitShape<typeof ResultSchema>): Promise<CompleteResponse | undefined>;
  /** Gives the claim up. @throws OncewardError. */
  release(reason: string): Promise<void>;
  /** Lets the lease run out without an outcome, and aborts the signal. */
  abandon(why: OncewardError): void;
  /** Ends the heartbeats. */
  end(): void;
}

/** A claim that this process holds. */
export class HeldClaim implements RunningClaim {
  readonly guarded = true;
  readonly namespace: string;
  readonly key: string;
  readonly fencingToken: bigint;
  readonly attempt: number;
  readonly checkpoint: SavedCheckpoint | undefined;
  readonly #lease: Lease;
  readonly #calls: Calls;
  readonly #timeoutMs: number;

  constructor(
    calls: Calls,
    name: { readonly namespace: string; readonly key: string },
    granted: { readonly claimed: Claimed; readonly sentAtMs: number },
    timeoutMs: number,
    onLost: (why: OncewardError) => void,
  ) {
    const { claimed, sentAtMs } = granted;
    this.namespace = name.namespace;
    this.key = name.key;
    this.fencingToken = claimed.fencingToken;
    this.attempt = claimed.attempt;
    this.checkpoint = readCheckpoint(claimed.checkpoint);
    this.#calls = calls;
    this.#timeoutMs = timeoutMs;
    this.#lease = new Lease(() => this.#extendLease(), onLost, this.#named());
    this.#lease.granted(
      sentAtMs,
      claimed.leaseRemaining === undefined ? 0 : durationMs(claimed.leaseRemaining),
    );
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  async saveCheckpoint(name: string, state?: unknown): Promise<void> {
    const checkpoint: MessageInitShape<typeof CheckpointSchema> = writeCheckpoint(name, state);
    await retrying(async () => {
      const sentAtMs = performance.now();
      const { leaseRemaining } = await this.#extendLease(checkpoint);
      if (leaseRemaining !== undefined) this.#lease.granted(sentAtMs, durationMs(leaseRemaining));
    }, performance.now() + this.#timeoutMs);
  }

  deriveKey(label: string): string {
    return deriveKey(this.namespace, this.key, label);
  }

  /**
   * Tells the service until it answers, or until the lease is gone for as long as it was: whoever was to take over has
   * done so by then.
   */
  async complete(result: MessageInitShape<typeof ResultSchema>): Promise<CompleteResponse> {
    const giveUpAtMs =
      Math.max(performance.now(), this.#lease.endsAtMs) + Math.max(this.#timeoutMs, this.#lease.lengthMs);
    return await retrying(() => this.#calls.complete({ ...this.#named(), result }), giveUpAtMs);
  }

  /** Lets a retry run at once. If the service can't be told, the end of the lease will tell it. */
  async release(reason: string): Promise<void> {
    const text = truncateUtf8(reason.replaceAll("\0", ""), MAX_RELEASE_REASON_BYTES);
    await retrying(
      () => this.#calls.release({ ...this.#named(), reason: text }),
      performance.now() + this.#timeoutMs,
    );
  }

  abandon(why: OncewardError): void {
    this.#lease.abandon(why);
  }

  end(): void {
    this.#lease.end();
  }

  /** @throws OncewardError that names this claim: the function sees it, beside those of other runs. */
  async #extendLease(checkpoint?: MessageInitShape<typeof CheckpointSchema>): Promise<ExtendLeaseResponse> {
    try {
      return await this.#calls.extendLease({ ...this.#named(), ...(checkpoint && { checkpoint }) });
    } catch (cause) {
      throw errorAbout(this.#named(), errorFromCall(cause));
    }
  }

  #named() {
    return { namespace: this.namespace, key: this.key, fencingToken: this.fencingToken };
  }
}
