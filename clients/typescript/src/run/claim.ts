import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { OncewardError, type SavedCheckpoint } from "../errors/errors.ts";
import { errorAbout, errorFromCall, mayHaveHappened } from "../errors/mapping.ts";
import { truncateUtf8 } from "../errors/violations.ts";
import type {
  Claimed,
  CompleteResponse,
  ExtendLeaseRequestSchema,
  ExtendLeaseResponse,
} from "../gen/onceward/v1/idempotency_pb.ts";
import type { ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { deriveKey } from "../keys/keys.ts";
import { MAX_RELEASE_REASON_BYTES } from "../wire/limits.ts";
import type { Calls } from "./calls.ts";
import { readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import type { Judging } from "./judging.ts";
import { Lease, leaseLost } from "./lease.ts";
import { leaseNowMs } from "./lease-clock.ts";
import { OutcomeUnknownError } from "./outcome-unknown.ts";
import { MAX_LATE_ANSWERS } from "./renew.ts";
import { retryingHeld } from "./retry.ts";

/** The claim that a guarded function runs under. */
export interface Claim {
  /**
   * False if the service was unreachable and `onUnavailable` is "proceed", or the client's `guard` is off: then no claim
   * keeps other callers away.
   */
  readonly guarded: boolean;
  readonly namespace: string;
  readonly key: string;
  /**
   * Strictly increasing per key, forever. Pass it to a downstream that can compare numbers, so that it refuses a holder
   * that stalled and was superseded. 0 if not guarded, which is older than every claim.
   */
  readonly fencingToken: bigint;
  /**
   * 1 for the key's first claim, one more for each later one: after a release, when its function threw, and after a
   * takeover, when its lease expired. Above 1, an earlier effect may have happened. 0 if not guarded: then the number is
   * unknown.
   */
  readonly attempt: number;
  /** The last checkpoint of an earlier attempt; undefined if none was saved. */
  readonly checkpoint: SavedCheckpoint | undefined;
  /**
   * Aborts when the lease is lost: another process may start, so stop what can be stopped. If not guarded, there is no
   * lease. Aborts, too, when the run's own `signal` does, and when `close({ timeoutMs })` of the client has waited for
   * `timeoutMs`.
   */
  readonly signal: AbortSignal;
  /**
   * Marks that the effect begins, with the option `marksBegin`, and prolongs the lease: call it right before the effect, which may begin
   * once this resolves. It does nothing without the option, if it has succeeded before, or if not guarded.
   *
   * @throws OncewardError, as `saveCheckpoint`; then the effect must not begin.
   */
  begin(): Promise<void>;
  /**
   * Saves this attempt's progress for a later attempt that takes over, and prolongs the lease. Replaces the last
   * checkpoint. Once it resolves, the lease lasts, so that the next step may begin. Does nothing if not guarded.
   *
   * @param name 1-128 bytes, such as "charged".
   * @param state a JSON value of at most 16 KiB, or undefined.
   * @throws OncewardError; with CLAIM_SUPERSEDED if another holder has taken over, with LEASE_LOST if several answers in turn
   *   came after the lease that they grant.
   */
  saveCheckpoint(name: string, state?: unknown): Promise<void>;
  /**
   * Returns an idempotency key for a downstream: opaque, 43 characters, the same on every attempt, different for every
   * label. A downstream that honours such keys absorbs the repeat after a crash.
   */
  deriveKey(label: string): string;
  /**
   * Says that the effect may have happened, for code between the function and `run` that swallows errors: regardless of what the function then
   * returns or throws, nothing is stored or released, and the claim is left to its lease and the namespace's policy. If the function
   * returns, the run rejects with the returned error, which has `error` as its cause. The first call decides.
   */
  outcomeUnknown(error?: unknown): OutcomeUnknownError;
}

/** A claim as `run` uses it: the function's view of it, and how it ends. */
export interface RunningClaim extends Claim {
  /** The run's options, or the client's, by which errors of the function are judged. */
  readonly judging: Judging;
  /** As `UnresolvedClaim` has it; 0 if the outcome of no earlier attempt is unknown. */
  readonly msSinceEffectMayHaveBegun: number;
  /** False before the mark of `begin` may be stored, of a claim that took over no unknown outcome: there was no effect. */
  readonly mayHaveBegun: boolean;
  /** The error of `outcomeUnknown`, once it was called. */
  readonly unknownBecause: OutcomeUnknownError | undefined;
  /**
   * Stores the outcome. Returns undefined if the claim is not guarded, and nothing is stored. @throws OncewardError.
   */
  complete(result: MessageInitShape<typeof ResultSchema>): Promise<CompleteResponse | undefined>;
  /**
   * Releases the claim, or gives the record back as it was before the claim; leaves a continued claim, whose effect may have begun, to
   * its lease instead. @throws OncewardError.
   */
  release(reason: string, giveBack?: boolean): Promise<void>;
  /** Stops the heartbeats so that the lease expires without an outcome, and aborts the signal. */
  abandon(error: OncewardError): void;
  /** Stops the heartbeats. */
  end(): void;
}

/**
 * Thrown by a guarded function that no longer waits for its effect, which may still happen. The claim is neither
 * completed nor released: its lease expires, and then the namespace's policy applies.
 */
export class ClaimAbandoned extends OncewardError {
  constructor(message: string) {
    super("LEASE_LOST", message);
  }
}

/** The operation of a claim, and how errors of its function are judged. */
interface ClaimName extends Judging {
  readonly namespace: string;
  readonly key: string;
  readonly claimId?: string | undefined;
  readonly marksBegin?: boolean | undefined;
}

/** What a claim does without the service. */
abstract class NamedClaim {
  readonly namespace: string;
  readonly key: string;
  readonly judging: Judging;
  unknownBecause: OutcomeUnknownError | undefined;

  constructor({ namespace, key, classifyError, onError }: ClaimName) {
    this.namespace = namespace;
    this.key = key;
    this.judging = { classifyError, onError };
  }

  deriveKey(label: string): string {
    return deriveKey(this.namespace, this.key, label);
  }

  outcomeUnknown(error?: unknown): OutcomeUnknownError {
    this.unknownBecause ??= new OutcomeUnknownError(
      "The function does not know whether it had its effect.",
      error === undefined ? undefined : { cause: error },
    );
    return this.unknownBecause;
  }
}

/** How long an outcome was unknown at a time of the clock of `leaseNowMs`. */
interface UnknownSince {
  readonly forMs: number;
  readonly atMs: number;
}

/** What an ExtendLease saves besides the lease. */
type Saved = Pick<MessageInitShape<typeof ExtendLeaseRequestSchema>, "begin" | "checkpoint">;

/** A claim that this process holds. */
export class HeldClaim extends NamedClaim implements RunningClaim {
  readonly guarded = true;
  readonly fencingToken: bigint;
  readonly attempt: number;
  readonly checkpoint: SavedCheckpoint | undefined;
  readonly #unknown: UnknownSince | undefined;
  readonly #lease: Lease;
  readonly #calls: Calls;
  readonly #timeoutMs: number;
  /** The signal of the run's caller. */
  readonly #callers: AbortSignal | undefined;
  readonly #stopListening: () => void;
  readonly #marksBegin: boolean;
  /** With its caller's id, the claim may be the one of an earlier process whose effect has begun. */
  readonly #isContinued: boolean;
  mayHaveBegun: boolean;
  #isMarked = false;
  #isSettled = false;

  constructor(
    calls: Calls,
    name: ClaimName,
    granted: {
      readonly claimed: Claimed;
      readonly sentAtMs: number;
      readonly unknown?: UnknownSince | undefined;
    },
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
    onLost: (error: OncewardError) => void,
  ) {
    super(name);
    const { claimed, sentAtMs } = granted;
    this.fencingToken = claimed.fencingToken;
    this.attempt = claimed.attempt;
    this.checkpoint = readCheckpoint(claimed.checkpoint);
    this.#isContinued = name.claimId !== undefined;
    this.#unknown = granted.unknown;
    this.#calls = calls;
    this.#timeoutMs = timeoutMs;
    this.#callers = signal;
    this.#marksBegin = name.marksBegin === true;
    this.mayHaveBegun = !this.#marksBegin || granted.unknown !== undefined || this.#isContinued;
    this.#lease = new Lease((timeoutMs) => this.#extendLease({}, timeoutMs), onLost, this.#ref());
    this.#lease.granted(
      sentAtMs,
      claimed.leaseRemaining === undefined ? 0 : durationMs(claimed.leaseRemaining),
    );
    this.#stopListening = calls.onClosing({
      functionsEnd: (reason) => this.#lease.interrupt(reason),
      closed: (reason) => this.#lease.abandon(reason),
    });
    signal?.addEventListener("abort", this.#interrupt);
    if (signal?.aborted) this.#interrupt();
  }

  readonly #interrupt = () => this.#lease.interrupt(this.#callers?.reason);

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  get msSinceEffectMayHaveBegun(): number {
    return this.#unknown === undefined ? 0 : this.#unknown.forMs + leaseNowMs() - this.#unknown.atMs;
  }

  async begin(): Promise<void> {
    if (!this.#marksBegin || this.#isMarked) return;
    // A function that was abandoned before it began may still run.
    if (this.#isSettled) throw leaseLost(this.#ref());
    const { mayHaveBegun } = this;
    this.mayHaveBegun = true;
    try {
      await this.#renew({ begin: true });
      this.#isMarked = true;
    } catch (cause) {
      // A mark whose answer is lost may be stored.
      this.mayHaveBegun = mayHaveBegun || this.#isMarked || mayHaveHappened(errorFromCall(cause));
      throw cause;
    }
  }

  async saveCheckpoint(name: string, state?: unknown): Promise<void> {
    await this.#renew({ checkpoint: writeCheckpoint(name, state) });
  }

  /** Extends the lease, which lasts when this resolves. @throws OncewardError. */
  async #renew(saved: Saved): Promise<void> {
    // An answer that comes late shows nothing: another holder may have taken over in the meantime.
    for (let answers = 0; answers === 0 || this.#lease.isOver; answers++) {
      if (answers > MAX_LATE_ANSWERS) throw leaseLost(this.#ref());
      await retryingHeld(async () => {
        const sentAtMs = leaseNowMs();
        const { leaseRemaining } = await this.#extendLease(saved);
        if (leaseRemaining !== undefined) this.#lease.granted(sentAtMs, durationMs(leaseRemaining));
      }, performance.now() + this.#timeoutMs);
    }
  }

  /**
   * Stores the outcome. Retries until the service answers, or until the lease has been expired for as long as it
   * lasted: by then another caller that wants the key has taken over.
   */
  async complete(result: MessageInitShape<typeof ResultSchema>): Promise<CompleteResponse> {
    this.#isSettled = true;
    const giveUpAtMs =
      performance.now() +
      Math.max(0, this.#lease.endsAtMs - leaseNowMs()) +
      Math.max(this.#timeoutMs, this.#lease.lengthMs);
    return await retryingHeld(() => this.#calls.complete({ ...this.#ref(), result }), giveUpAtMs);
  }

  /** Releases the claim, so that a retry runs at once. If the service is unreachable, the claim ends with its lease. */
  async release(reason: string, giveBack = false): Promise<void> {
    this.#isSettled = true;
    if (giveBack && this.#isContinued) return;
    const text = truncateUtf8(reason.replaceAll("\0", ""), MAX_RELEASE_REASON_BYTES);
    await retryingHeld(
      () => this.#calls.release({ ...this.#ref(), reason: text, giveBack }),
      performance.now() + this.#timeoutMs,
    );
  }

  abandon(error: OncewardError): void {
    this.#lease.abandon(error);
  }

  end(): void {
    this.#lease.end();
    this.#stopListening();
    this.#callers?.removeEventListener("abort", this.#interrupt);
  }

  /** @throws OncewardError that names this claim: the function may see errors of several runs. */
  async #extendLease(saved: Saved, timeoutMs?: number): Promise<ExtendLeaseResponse> {
    try {
      return await this.#calls.extendLease({ ...this.#ref(), ...saved }, timeoutMs);
    } catch (cause) {
      throw errorAbout(this.#ref(), errorFromCall(cause));
    }
  }

  #ref() {
    return { namespace: this.namespace, key: this.key, fencingToken: this.fencingToken };
  }
}

/** Replaces a claim if the service is unreachable and `onUnavailable` is "proceed", or the guard is off. Holds nothing. */
export class UnguardedClaim extends NamedClaim implements RunningClaim {
  readonly guarded: boolean = false;
  readonly fencingToken = 0n;
  readonly attempt: number = 0;
  readonly checkpoint = undefined;
  readonly msSinceEffectMayHaveBegun = 0;
  readonly mayHaveBegun = true;
  /** That of the run's caller: there is no lease to lose. */
  readonly signal: AbortSignal;

  constructor({
    signal = new AbortController().signal,
    ...name
  }: ClaimName & { readonly signal?: AbortSignal | undefined }) {
    super(name);
    this.signal = signal;
  }

  async begin(): Promise<void> {}

  /** Checks the checkpoint as a held claim does, and drops it. */
  async saveCheckpoint(name: string, state?: unknown): Promise<void> {
    writeCheckpoint(name, state);
  }

  async complete(): Promise<CompleteResponse | undefined> {
    return undefined;
  }

  async release(): Promise<void> {}

  abandon(): void {}

  end(): void {}
}

/** The claim of a run that is at most once: it completed its key before the function, so that nothing is left to store. */
export class RecordedClaim extends UnguardedClaim {
  override readonly guarded = true;
  override readonly attempt = 1;
  readonly #completion: CompleteResponse;

  /** @param completion what the service answered of the key's completion. */
  constructor(name: ConstructorParameters<typeof UnguardedClaim>[0], completion: CompleteResponse) {
    super(name);
    this.#completion = completion;
  }

  override async complete(): Promise<CompleteResponse> {
    return this.#completion;
  }
}
