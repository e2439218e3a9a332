import type { Completions } from "../cache/completions.ts";
import { answerClaim, type ClaimCommand, type ClaimOutcome } from "../domain/claim.ts";
import type { RecordId } from "../domain/record.ts";
import type {
  ClaimRequest,
  ClaimResponse,
  CompleteRequest,
  CompleteResponse,
  ExtendLeaseRequest,
  ExtendLeaseResponse,
  IdempotencyService,
  LookupRequest,
  LookupResponse,
  ReleaseRequest,
  ReleaseResponse,
} from "../gen/onceward/v1/idempotency_pb.ts";
import type { RecordStore } from "../store/record-store.ts";
import { createBatch } from "./batch.ts";
import type { Call, Handlers } from "./call.ts";
import {
  claimResponse,
  completeResponse,
  extendLeaseResponse,
  lookupResponse,
  releaseResponse,
} from "./idempotency-replies.ts";
import {
  parseClaim,
  parseComplete,
  parseExtendLease,
  parseLookup,
  parseRelease,
} from "./idempotency-requests.ts";
import type { Waiters } from "./waiters.ts";

/** The RPCs that a batch is made of. */
export interface SingleCalls {
  claim(request: ClaimRequest, call: Call): Promise<ClaimResponse>;
  complete(request: CompleteRequest, call: Call): Promise<CompleteResponse>;
  release(request: ReleaseRequest, call: Call): Promise<ReleaseResponse>;
  extendLease(request: ExtendLeaseRequest, call: Call): Promise<ExtendLeaseResponse>;
  lookup(request: LookupRequest, call: Call): Promise<LookupResponse>;
}

export interface IdempotencyOptions {
  readonly records: RecordStore;
  readonly completions: Completions;
  readonly waiters: Waiters;
  /** Told of every Claim that was answered, for the metrics. */
  readonly onClaim: (tenant: string, outcome: ClaimOutcome["kind"]) => void;
}

/** A wait ends this long before the deadline, so that its answer still arrives. */
const REPLY_MARGIN_MS = 100;

/** IdempotencyService: what each RPC promises stands in `idempotency.proto`. */
export function createIdempotencyService(options: IdempotencyOptions): Handlers<typeof IdempotencyService> {
  const single = createSingleCalls(options);
  return { ...single, batch: createBatch(single) };
}

function createSingleCalls({ records, completions, waiters, onClaim }: IdempotencyOptions): SingleCalls {
  /** Answers from a copy of the completed record if there is one; only Postgres grants. */
  async function claimOnce(command: ClaimCommand, call: Call): Promise<ClaimOutcome> {
    const generation = cacheGeneration(call);
    const copy = await completions.find(command.id, generation);
    const replay = copy && answerClaim(copy, command);
    if (replay !== undefined && replay.kind !== "contended") return replay;
    const outcome = await records.claim(command, call);
    completions.countAnswer(command.id, outcome.kind === "completed");
    if (outcome.kind === "completed") completions.keep(outcome.record, generation);
    return outcome;
  }

  /** Settles a record, and wakes who waits for it here. */
  async function waking<Outcome>(id: RecordId, settled: Promise<Outcome>): Promise<Outcome> {
    const outcome = await settled;
    waiters.wake(id);
    return outcome;
  }

  return {
    async claim(request, call) {
      const { waitMs, ...command } = parseClaim(request, call.principal);
      const waitUntilMs = Math.min(performance.now() + waitMs, call.atMs - REPLY_MARGIN_MS);
      let outcome = await claimOnce(command, call);
      while (outcome.kind === "inProgress") {
        const leftMs = waitUntilMs - performance.now();
        if (leftMs <= 0) break;
        await waiters.wait(command.id, leftMs, call.signal);
        outcome = await claimOnce(command, call);
      }
      onClaim(tenantName(call), outcome.kind);
      return claimResponse(outcome);
    },

    async complete(request, call) {
      const command = parseComplete(request, call.principal);
      const generation = cacheGeneration(call);
      const completion = await waking(command.id, records.complete(command, call));
      completions.keep(completion.record, generation);
      return completeResponse(completion);
    },

    async release(request, call) {
      const command = parseRelease(request, call.principal);
      return releaseResponse(await waking(command.id, records.release(command, call)));
    },

    async extendLease(request, call) {
      const command = parseExtendLease(request, call.principal);
      return extendLeaseResponse(await records.extendLease(command, call));
    },

    async lookup(request, call) {
      return lookupResponse(await records.read(parseLookup(request, call.principal), call));
    },
  };
}

/** Taken before a statement runs: a copy of what it showed must not be found under a later generation. */
function cacheGeneration({ principal }: Call): number {
  return principal.role === "OPERATOR" ? 0 : principal.tenant.cacheGeneration;
}

function tenantName({ principal }: Call): string {
  return principal.role === "OPERATOR" ? "" : principal.tenant.name;
}
