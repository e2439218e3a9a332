import { equals } from "@bufbuild/protobuf";
import { type Checkpoint, type Result, Result_Kind, ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import type { TestingClock } from "./clock.ts";
import { checkAge, type KeyAge } from "./late-keys.ts";
import { phaseOf, type RecordId, type StoredRecord, type Terms } from "./record.ts";
import { refusal } from "./refusal.ts";

/** A Claim with the policy applied to the request. */
export interface ClaimCommand {
  readonly id: RecordId;
  readonly fingerprint: Uint8Array | undefined;
  /** Empty: none. */
  readonly claimId: string;
  readonly owner: string;
  readonly acceptAmbiguous: boolean;
  /** Undefined: the policy accepts keys of any age, or the key's time is unknown. */
  readonly age: KeyAge | undefined;
  readonly terms: Terms;
}

/** The outcome of a Claim, with the record at that time. */
export interface ClaimOutcome {
  /** `recovered`: the caller's own claim, whose reply was lost. `replayed`: the record is completed. */
  readonly kind: "granted" | "recovered" | "inProgress" | "replayed" | "ambiguous";
  readonly record: StoredRecord;
}

/** The outcome of a Complete. */
export interface Completion {
  readonly completedAtMs: number;
  readonly expiresAtMs: number;
  readonly alreadyCompleted: boolean;
}

/** A call by the holder of the claim that `fencingToken` names. */
export interface Held {
  readonly id: RecordId;
  readonly fencingToken: bigint;
}

/**
 * The records of one tenant, in memory. Every operation is synchronous, so that no other one runs between its
 * reads and its writes. Each throws OncewardError, with the reasons that `idempotency.proto` lists for its
 * RPC.
 */
export class Records {
  readonly #clock: TestingClock;
  readonly #byName = new Map<string, StoredRecord>();
  /** All keys share one counter, so that a key's tokens increase also after its record has expired. */
  #lastToken = 0n;

  constructor(clock: TestingClock) {
    this.#clock = clock;
  }

  /** Returns the record, if the key is known and its retention has not ended. */
  find(id: RecordId): StoredRecord | undefined {
    const record = this.#byName.get(nameOf(id));
    return record !== undefined && record.expiresAtMs > this.#clock.nowMs ? record : undefined;
  }

  /**
   * Returns every record whose retention has not ended, in the order in which the keys were first claimed.
   */
  all(): StoredRecord[] {
    return [...this.#byName.values()].filter(({ expiresAtMs }) => expiresAtMs > this.#clock.nowMs);
  }

  claim(command: ClaimCommand): ClaimOutcome {
    const met = this.find(command.id);
    if (met === undefined) {
      if (command.age !== undefined) checkAge(command.age, this.#clock.nowMs);
      return { kind: "granted", record: this.#grant(command, undefined) };
    }
    if (mismatch(met.fingerprint, command.fingerprint)) {
      throw refusal("FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs.");
    }
    const phase = phaseOf(met, this.#clock.nowMs);
    switch (phase) {
      case "completed":
        return { kind: "replayed", record: met };
      case "inProgress": {
        const isOwn = command.claimId !== "" && command.claimId === met.claimId;
        return { kind: isOwn ? "recovered" : phase, record: met };
      }
      case "ambiguous":
        if (!command.acceptAmbiguous) return { kind: phase, record: met };
        return { kind: "granted", record: this.#grant(command, met) };
      case "lapsed":
      case "released":
        return { kind: "granted", record: this.#grant(command, met) };
    }
  }

  complete(
    command: Held & { readonly result: Result; readonly keyRetentionS: number | undefined },
  ): Completion {
    const { result } = command;
    const record = this.#own(command);
    const { settlement, terms } = record;
    if (settlement?.kind === "released") throw alreadyReleased();
    if (settlement?.kind === "completed") {
      if (!equals(ResultSchema, settlement.result, result)) {
        throw refusal("ALREADY_COMPLETED", "The claim was completed before, with another result.");
      }
      const { completedAtMs } = settlement;
      return { completedAtMs, expiresAtMs: record.expiresAtMs, alreadyCompleted: true };
    }
    const completedAtMs = this.#clock.nowMs;
    const keyRetentionS = command.keyRetentionS ?? terms.keyRetentionS;
    const ofKindS = result.kind === Result_Kind.FAILURE ? terms.failureRetentionS : terms.resultRetentionS;
    const resultExpiresAtMs = completedAtMs + Math.min(keyRetentionS, ofKindS) * 1000;
    const { expiresAtMs } = this.#keep({
      ...record,
      expiresAtMs: completedAtMs + keyRetentionS * 1000,
      settlement: { kind: "completed", completedAtMs, result, resultExpiresAtMs },
    });
    return { completedAtMs, expiresAtMs, alreadyCompleted: false };
  }

  release(command: Held & { readonly reason: string }): StoredRecord {
    const record = this.#own(command);
    if (record.settlement?.kind === "completed") throw alreadyCompleted();
    if (record.settlement?.kind === "released") return record;
    const settlement = { kind: "released", releasedAtMs: this.#clock.nowMs, reason: command.reason } as const;
    return this.#keep({ ...record, settlement });
  }

  extendLease(
    command: Held & { readonly leaseMs: number | undefined; readonly checkpoint: Checkpoint | undefined },
  ): StoredRecord {
    const record = this.#own(command);
    if (record.settlement?.kind === "completed") throw alreadyCompleted();
    if (record.settlement?.kind === "released") throw alreadyReleased();
    const leaseExpiresAtMs = this.#clock.nowMs + (command.leaseMs ?? record.terms.leaseMs);
    return this.#keep({
      ...record,
      leaseExpiresAtMs: Math.max(record.leaseExpiresAtMs, leaseExpiresAtMs),
      expiresAtMs: Math.max(record.expiresAtMs, leaseExpiresAtMs),
      checkpoint: command.checkpoint ?? record.checkpoint,
    });
  }

  /**
   * @param previous the record that the claim takes over, as a further attempt; undefined for a new
   * operation.
   */
  #grant(command: ClaimCommand, previous: StoredRecord | undefined): StoredRecord {
    const { id, claimId, owner, terms } = command;
    const nowMs = this.#clock.nowMs;
    const leaseExpiresAtMs = nowMs + terms.leaseMs;
    return this.#keep({
      id,
      claimId,
      owner,
      terms,
      fencingToken: ++this.#lastToken,
      attempt: (previous?.attempt ?? 0) + 1,
      fingerprint: previous?.fingerprint ?? command.fingerprint,
      firstClaimedAtMs: previous?.firstClaimedAtMs ?? nowMs,
      claimedAtMs: nowMs,
      leaseExpiresAtMs,
      expiresAtMs: Math.max(nowMs + terms.keyRetentionS * 1000, leaseExpiresAtMs),
      checkpoint: previous?.checkpoint,
      settlement: undefined,
    });
  }

  #keep(record: StoredRecord): StoredRecord {
    this.#byName.set(nameOf(record.id), record);
    return record;
  }

  #own({ id, fencingToken }: Held): StoredRecord {
    const record = this.find(id);
    if (record === undefined) {
      throw refusal(
        "RECORD_NOT_FOUND",
        "There is no such record: the key was never claimed, or its retention has ended.",
      );
    }
    if (record.fencingToken !== fencingToken) {
      throw refusal("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.");
    }
    return record;
  }
}

/** Returns a unique name: namespaces contain no space. */
function nameOf({ namespace, key }: RecordId): string {
  return `${namespace} ${key}`;
}

/**
 * Returns whether both fingerprints are known and differ: a claim without one neither binds nor breaks a key.
 */
function mismatch(bound: Uint8Array | undefined, brought: Uint8Array | undefined): boolean {
  return bound !== undefined && brought !== undefined && bound.some((byte, index) => byte !== brought[index]);
}

function alreadyCompleted() {
  return refusal("ALREADY_COMPLETED", "The claim was completed before.");
}

function alreadyReleased() {
  return refusal("ALREADY_RELEASED", "The claim was released before.");
}
