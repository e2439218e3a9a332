import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ClaimRequest,
  type ClaimResponse,
  type CompleteRequest,
  type CompleteResponse,
  CompleteResponseSchema,
  type ExtendLeaseRequest,
  type ExtendLeaseResponse,
  type LookupRequest,
  type LookupResponse,
  LookupResponseSchema,
  type ReleaseRequest,
  type ReleaseResponse,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import type { TestingClock } from "./clock.ts";
import type { Faults } from "./faults.ts";
import type { TestingPolicy } from "./policy.ts";
import type { ClaimOutcome, Records } from "./records.ts";
import { claimResponse, extendLeaseResponse, recordMessage } from "./replies.ts";
import { parseClaim, parseComplete, parseExtendLease, parseLookup, parseRelease } from "./requests.ts";
import type { Waiters } from "./waiters.ts";

/** The context of a call. */
export interface CallContext {
  readonly signal: AbortSignal;
  /** The caller's deadline, on the clock of `performance.now()`. */
  readonly deadlineMs: number;
}

/** The state that the calls share. */
export interface ServiceState {
  readonly clock: TestingClock;
  readonly records: Records;
  readonly policyFor: (namespace: string) => TestingPolicy;
  readonly waiters: Waiters;
  readonly faults: Faults;
  /** The number of claims, by their outcome. */
  readonly counts: Record<ClaimOutcome["kind"], number>;
}

/** A wait ends this long before the deadline, so that its reply still arrives. */
const REPLY_MARGIN_MS = 100;

/** The RPCs that a batch consists of. Each throws OncewardError, with the reasons that its proto lists. */
export class SingleCalls {
  readonly #state: ServiceState;

  constructor(state: ServiceState) {
    this.#state = state;
  }

  claim(request: ClaimRequest, context: CallContext): Promise<ClaimResponse> {
    const { faults, counts, clock } = this.#state;
    return faults.around("claim", async () => {
      const outcome = await this.#claimWaiting(request, context);
      counts[outcome.kind]++;
      return claimResponse(outcome, clock.nowMs);
    });
  }

  async #claimWaiting(request: ClaimRequest, { signal, deadlineMs }: CallContext) {
    const { records, waiters, policyFor, clock } = this.#state;
    const { command, waitMs } = parseClaim(request, policyFor(request.namespace), clock.nowMs);
    const waitUntilMs = Math.min(performance.now() + waitMs, deadlineMs - REPLY_MARGIN_MS);
    let outcome = records.claim(command);
    while (outcome.kind === "inProgress") {
      const leftMs = waitUntilMs - performance.now();
      if (leftMs <= 0) break;
      await waiters.wait(leftMs, signal);
      outcome = records.claim(command);
    }
    return outcome;
  }

  complete(request: CompleteRequest): Promise<CompleteResponse> {
    const { faults, records, policyFor, waiters } = this.#state;
    return faults.around("complete", () => {
      const completion = records.complete(parseComplete(request, policyFor(request.namespace)));
      waiters.wake();
      return create(CompleteResponseSchema, {
        completedAt: timestampFromMs(completion.completedAtMs),
        expiresAt: timestampFromMs(completion.expiresAtMs),
        alreadyCompleted: completion.alreadyCompleted,
      });
    });
  }

  release(request: ReleaseRequest): Promise<ReleaseResponse> {
    const { faults, records, waiters } = this.#state;
    return faults.around("release", () => {
      const { expiresAtMs } = records.release(parseRelease(request));
      waiters.wake();
      return create(ReleaseResponseSchema, { expiresAt: timestampFromMs(expiresAtMs) });
    });
  }

  extendLease(request: ExtendLeaseRequest): Promise<ExtendLeaseResponse> {
    const { faults, records, policyFor, clock } = this.#state;
    return faults.around("extendLease", () => {
      const record = records.extendLease(parseExtendLease(request, policyFor(request.namespace)));
      return extendLeaseResponse(record, clock.nowMs);
    });
  }

  lookup(request: LookupRequest): Promise<LookupResponse> {
    const { faults, records, clock } = this.#state;
    return faults.around("lookup", () => {
      const record = records.find(parseLookup(request));
      return create(LookupResponseSchema, {
        ...(record && { record: recordMessage(record, clock.nowMs) }),
        serverTime: timestampFromMs(clock.nowMs),
      });
    });
  }
}
