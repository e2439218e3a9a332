import { clone, create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import {
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import {
  type BatchRequestItem,
  type BatchResponseItemSchema,
  type ClaimRequest,
  type CompleteRequest,
  type ExtendLeaseRequest,
  IdempotencyService,
  type LookupRequest,
  type ReleaseRequest,
} from "../gen/onceward/v1/idempotency_pb.ts";
import {
  type Record as KnownRecord,
  Record_State,
  RecordSchema,
  type Result,
  Result_Kind,
  ResultSchema,
} from "../gen/onceward/v1/record_pb.ts";
import { checkAge, checkClaim, checkComplete, checkExtendLease, checkFingerprint } from "./checks.ts";
import type { TestingClock } from "./clock.ts";
import type { Faults } from "./faults.ts";
import type { ResolvedPolicy } from "./policy.ts";
import { itemError, refusal } from "./refusal.ts";

/** What a claim is answered. `recovered`: the caller's own claim, whose reply was lost. `replayed`: the record is completed. */
export type ClaimOutcome = "granted" | "recovered" | "inProgress" | "replayed" | "ambiguous";

/** The record of one key, and what only the service knows of its newest claim. */
interface Held {
  readonly record: KnownRecord;
  readonly claimId: string;
  readonly leaseMs: number;
  /** Kept beyond its retention, to distinguish a repeated Complete from a different one. Unset if the claim completed the record. */
  result?: Result;
  /** Whether the newest claim marks when its effect begins, and has not: its lease ends without an unknown outcome. */
  beginsLater: boolean;
  /** Whether the newest claim accepts ambiguity, or that which was given back did. */
  readonly acceptsAmbiguous: boolean;
  /** What the newest claim took over after its lease. */
  readonly unknown?: Held | undefined;
  /** The token of the claim that was given back, if the newest one is that which it had taken over. */
  readonly givenBack?: bigint;
}

/** When an answer in progress says to come again: at the end of the lease, within these limits. */
const MIN_RETRY_AFTER_MS = 10;
const MAX_RETRY_AFTER_MS = 1000;

/**
 * IdempotencyService for one tenant, in memory; `idempotency.proto` says what each RPC guarantees. It keeps to the policy, and
 * does not check what the client checks before it sends a request. No other call runs between a call's reads and its writes.
 * Each throws ConnectError, with the reasons that its proto lists.
 */
export class MemoryService {
  /** The number of claims, by their outcome. */
  readonly counts: Record<ClaimOutcome, number> = {
    granted: 0,
    recovered: 0,
    inProgress: 0,
    replayed: 0,
    ambiguous: 0,
  };
  readonly #clock: TestingClock;
  readonly #faults: Faults;
  readonly #policyFor: (namespace: string) => ResolvedPolicy;
  readonly #byName = new Map<string, Held>();
  /** All keys share one counter, so that a key's tokens increase also after its record has expired. */
  #lastToken = 0n;
  /** Each wakes a claim that waits for another holder. */
  readonly #waiting = new Set<() => void>();

  constructor(clock: TestingClock, faults: Faults, policyFor: (namespace: string) => ResolvedPolicy) {
    this.#clock = clock;
    this.#faults = faults;
    this.#policyFor = policyFor;
  }

  /** Registers the RPCs. BatchStream, which only connections over a network use, is unimplemented. */
  readonly routes = ({ service }: ConnectRouter): void => {
    service(IdempotencyService, {
      claim: (request, context) => this.#claimWaiting(request, context),
      complete: (request) => this.#complete(request),
      release: (request) => this.#release(request),
      extendLease: (request) => this.#extendLease(request),
      lookup: (request) => this.#lookup(request),
      batch: async ({ items }, context) => {
        const replies: MessageInitShape<typeof BatchResponseItemSchema>[] = [];
        for (const { request } of items) replies.push(await this.#item(request, context));
        return { items: replies };
      },
    });
  };

  /** The number of claims that wait for another holder now. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Wakes every claim that waits: a record was settled, or the clock has advanced. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Returns every record whose retention has not ended, in the order in which the keys were first claimed. */
  records(): KnownRecord[] {
    const found = [...this.#byName.values()].map(({ record }) => this.#find(record));
    return found.filter((held) => held !== undefined).map(({ record }) => clone(RecordSchema, record));
  }

  /** Answers an item of a batch; the refusal of one item does not affect the others. */
  async #item(
    { case: call, value }: BatchRequestItem["request"],
    context: HandlerContext,
  ): Promise<MessageInitShape<typeof BatchResponseItemSchema>> {
    try {
      switch (call) {
        case "claim":
          return { response: { case: call, value: await this.#claimWaiting(value, context) } };
        case "complete":
          return { response: { case: call, value: await this.#complete(value) } };
        case "release":
          return { response: { case: call, value: await this.#release(value) } };
        case "extendLease":
          return { response: { case: call, value: await this.#extendLease(value) } };
        case "lookup":
          return { response: { case: call, value: await this.#lookup(value) } };
        case undefined:
          throw refusal("INVALID_REQUEST", "An item has no request.");
      }
    } catch (error) {
      return { response: { case: "error", value: itemError(error) } };
    }
  }

  #claimWaiting(request: ClaimRequest, { signal }: HandlerContext) {
    return this.#faults.around("claim", async () => {
      const waitUntilMs = performance.now() + (request.wait === undefined ? 0 : durationMs(request.wait));
      for (;;) {
        const { kind, response } = this.#claim(request);
        const leftMs = waitUntilMs - performance.now();
        if (kind !== "inProgress" || leftMs <= 0) {
          this.counts[kind]++;
          return response;
        }
        await this.#change(leftMs, signal);
        if (signal.aborted) throw refusal("CANCELLED", "The caller disconnected.");
      }
    });
  }

  /** Resolves once a record may have changed, after `timeoutMs` of real time, or when the caller leaves. */
  #change(timeoutMs: number, caller: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        caller.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      caller.addEventListener("abort", wake);
      this.#waiting.add(wake);
      if (caller.aborted) wake();
    });
  }

  #claim(request: ClaimRequest) {
    const nowMs = this.#clock.nowMs;
    const policy = this.#policyFor(request.namespace);
    checkClaim(request, policy, nowMs);
    const met = this.#find(request);
    if (met === undefined) checkAge(request, policy, nowMs);
    else checkFingerprint(met.record.fingerprint, request.fingerprint);
    const kind = met === undefined ? "granted" : outcomeOf(met, request, nowMs);
    const held = met === undefined || kind === "granted" ? this.#grant(request, policy, met) : met;
    const { record } = held;
    const outcome = answerOf(kind, held, nowMs);
    return { kind, response: { ...fieldsOf(record), outcome, serverTime: timestampFromMs(nowMs) } };
  }

  /** @param previous the record that the claim takes over, as a further attempt; undefined for a new operation. */
  #grant(request: ClaimRequest, policy: ResolvedPolicy, previous: Held | undefined): Held {
    const { namespace, key, owner, claimId, lease, completion, marksBegin, acceptAmbiguous } = request;
    const nowMs = this.#clock.nowMs;
    const grantedLeaseMs = lease === undefined ? policy.defaultLeaseMs : durationMs(lease);
    const leaseMs = completion === undefined ? grantedLeaseMs : 0;
    const { attempt = 0, fingerprint, firstClaimedAt, checkpoint } = previous?.record ?? {};
    const record = create(RecordSchema, {
      namespace,
      key,
      owner,
      state: Record_State.IN_PROGRESS,
      fencingToken: ++this.#lastToken,
      attempt: attempt + 1,
      fingerprint: fingerprint?.byteLength ? fingerprint : request.fingerprint,
      firstClaimedAt: firstClaimedAt ?? timestampFromMs(nowMs),
      claimedAt: timestampFromMs(nowMs),
      leaseExpiresAt: timestampFromMs(nowMs + leaseMs),
      expiresAt: timestampFromMs(nowMs + Math.max(policy.keptS * 1000, leaseMs)),
      ...(checkpoint && { checkpoint }),
    });
    const isUnknown =
      previous !== undefined && previous.record.state !== Record_State.RELEASED && !previous.beginsLater;
    if (completion !== undefined) {
      record.state = Record_State.COMPLETED;
      record.result = create(ResultSchema, { kind: Result_Kind.SUCCESS });
      record.completedAt = record.claimedAt;
      record.resultExpiresAt = record.expiresAt;
    }
    const beginsLater = marksBegin && !isUnknown;
    const unknown = isUnknown ? previous : undefined;
    const held = { record, claimId, leaseMs, beginsLater, acceptsAmbiguous: acceptAmbiguous, unknown };
    this.#byName.set(nameOf(record), held);
    return held;
  }

  #complete(request: CompleteRequest) {
    return this.#faults.around("complete", () => {
      const policy = this.#policyFor(request.namespace);
      checkComplete(request, policy);
      const held = this.#own(request);
      const { record, result: earlier } = held;
      if (record.state === Record_State.RELEASED) throw alreadyReleased();
      const { result = create(ResultSchema) } = request;
      const isCompleted = record.state === Record_State.COMPLETED;
      if (isCompleted && (earlier === undefined || !equals(ResultSchema, earlier, result))) {
        throw refusal("ALREADY_COMPLETED", "The claim was completed before, with another result.");
      }
      if (!isCompleted) {
        const nowMs = this.#clock.nowMs;
        const isFailure = result.kind === Result_Kind.FAILURE;
        const replayedS = isFailure ? policy.failureRetentionS : policy.resultRetentionS;
        record.state = Record_State.COMPLETED;
        record.result = held.result = result;
        record.completedAt = timestampFromMs(nowMs);
        record.resultExpiresAt = timestampFromMs(nowMs + replayedS * 1000);
        record.expiresAt = timestampFromMs(nowMs + policy.keptS * 1000);
        this.wake();
      }
      return { ...fieldsOf(record), alreadyCompleted: isCompleted };
    });
  }

  #release(request: ReleaseRequest) {
    return this.#faults.around("release", () => {
      const before = this.#find(request);
      if (before?.givenBack === request.fencingToken && (request.giveBack || !before.acceptsAmbiguous))
        return fieldsOf(before.record);
      const held = this.#own(request);
      const { record, unknown, givenBack } = held;
      if (record.state === Record_State.COMPLETED) throw alreadyCompleted();
      if (record.state === Record_State.RELEASED) return fieldsOf(record);
      const isLimited = Number.isFinite(this.#policyFor(record.namespace).reclaimWithinS);
      if (unknown && (request.giveBack || (isLimited && (!held.acceptsAmbiguous || givenBack)))) {
        // What was given back can't be given back a second time.
        if (givenBack === undefined) this.#giveBack(held, unknown);
      } else if (record.state !== Record_State.RELEASED) {
        record.state = Record_State.RELEASED;
        record.releasedAt = timestampFromMs(this.#clock.nowMs);
        record.releaseReason = request.reason;
        this.wake();
      }
      return fieldsOf(record);
    });
  }

  /** Restores what a claim took over. */
  #giveBack(held: Held, { record: before, unknown }: Held): void {
    const { record } = held;
    const givenBack = record.fencingToken;
    const { attempt, owner, claimedAt, leaseExpiresAt, fencingToken } = before;
    Object.assign(record, { attempt, owner, claimedAt, leaseExpiresAt, fencingToken });
    this.#byName.set(nameOf(record), { ...held, claimId: "", unknown, givenBack });
    this.wake();
  }

  #extendLease(request: ExtendLeaseRequest) {
    return this.#faults.around("extendLease", () => {
      const { lease, checkpoint } = request;
      checkExtendLease(request, this.#policyFor(request.namespace));
      const held = this.#own(request);
      const { record, leaseMs } = held;
      if (record.state === Record_State.COMPLETED) throw alreadyCompleted();
      if (record.state === Record_State.RELEASED) throw alreadyReleased();
      const nowMs = this.#clock.nowMs;
      const endMs = nowMs + (lease === undefined ? leaseMs : durationMs(lease));
      const leaseEndMs = Math.max(endMs, timeMs(record.leaseExpiresAt));
      if (request.begin) held.beginsLater = false;
      record.state = Record_State.IN_PROGRESS;
      record.leaseExpiresAt = timestampFromMs(leaseEndMs);
      record.expiresAt = timestampFromMs(Math.max(leaseEndMs, timeMs(record.expiresAt)));
      if (checkpoint !== undefined) record.checkpoint = checkpoint;
      return { ...fieldsOf(record), leaseRemaining: durationFromMs(leaseEndMs - nowMs) };
    });
  }

  #lookup(request: LookupRequest) {
    return this.#faults.around("lookup", () => {
      const held = this.#find(request);
      const serverTime = timestampFromMs(this.#clock.nowMs);
      return { serverTime, ...(held && { record: fieldsOf(held.record) }) };
    });
  }

  /** Returns the record in its present state, if the key is known and its retention has not ended. */
  #find(name: Named): Held | undefined {
    const nowMs = this.#clock.nowMs;
    const held = this.#byName.get(nameOf(name));
    if (held === undefined || timeMs(held.record.expiresAt) <= nowMs) return undefined;
    const { record } = held;
    const isLapsed = record.state === Record_State.IN_PROGRESS && timeMs(record.leaseExpiresAt) <= nowMs;
    const { reclaimWithinS } = this.#policyFor(record.namespace);
    if (isLapsed && !held.beginsLater && timeMs(record.firstClaimedAt) + reclaimWithinS * 1000 <= nowMs)
      record.state = Record_State.AMBIGUOUS;
    record.resultExpired = record.state === Record_State.COMPLETED && timeMs(record.resultExpiresAt) <= nowMs;
    if (record.resultExpired) delete record.result;
    return held;
  }

  /** Returns the record of the claim that the token names. @throws ConnectError RECORD_NOT_FOUND, CLAIM_SUPERSEDED. */
  #own(claim: Named & { readonly fencingToken: bigint }): Held {
    const held = this.#find(claim);
    if (held === undefined) {
      throw refusal("RECORD_NOT_FOUND", "The key was never claimed, or its retention has ended.");
    }
    if (held.record.fencingToken !== claim.fencingToken) {
      throw refusal("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.");
    }
    return held;
  }
}

interface Named {
  readonly namespace: string;
  readonly key: string;
}

/** Returns a unique text: namespaces contain no space. */
function nameOf({ namespace, key }: Named): string {
  return `${namespace} ${key}`;
}

/** Returns the outcome of a claim of a known key. */
function outcomeOf({ record, claimId, result }: Held, request: ClaimRequest, nowMs: number): ClaimOutcome {
  const isOwn = claimId !== "" && claimId === request.claimId;
  switch (record.state) {
    case Record_State.COMPLETED:
      return isOwn && request.completion !== undefined && result === undefined ? "recovered" : "replayed";
    case Record_State.AMBIGUOUS:
      return request.acceptAmbiguous ? "granted" : "ambiguous";
    case Record_State.IN_PROGRESS:
      if (timeMs(record.leaseExpiresAt) <= nowMs) return "granted";
      return isOwn ? "recovered" : "inProgress";
    default:
      return "granted";
  }
}

function answerOf(kind: ClaimOutcome, { record, unknown }: Held, nowMs: number) {
  const last = unknown?.record;
  const leftMs = timeMs(record.leaseExpiresAt) - nowMs;
  const fields = fieldsOf(record);
  switch (kind) {
    case "granted":
    case "recovered":
      if (record.state === Record_State.COMPLETED) return { case: "recorded" as const, value: fields };
      return {
        case: "claimed" as const,
        value: {
          ...fields,
          leaseRemaining: durationFromMs(leftMs),
          ...(last && {
            unknown: { owner: last.owner, attempt: last.attempt, leaseExpiredAt: last.leaseExpiresAt },
          }),
        },
      };
    case "replayed":
      return { case: "completed" as const, value: fields };
    case "inProgress": {
      const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, leftMs));
      return { case: kind, value: { ...fields, retryAfter: durationFromMs(retryAfterMs) } };
    }
    case "ambiguous": {
      const leaseExpiredAt = timestampFromMs(timeMs(record.leaseExpiresAt));
      return { case: kind, value: { ...fields, leaseExpiredAt } };
    }
  }
}

/** Returns a record's fields, of which a reply takes those that it has, too. */
function fieldsOf({ $typeName: _, $unknown: __, ...fields }: KnownRecord) {
  return fields;
}

function timeMs(time: Timestamp | undefined): number {
  return time === undefined ? 0 : timestampMs(time);
}

function alreadyCompleted() {
  return refusal("ALREADY_COMPLETED", "The claim was completed before.");
}

function alreadyReleased() {
  return refusal("ALREADY_RELEASED", "The claim was released before.");
}
