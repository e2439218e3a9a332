import type { Admission } from "../admission/admission.ts";
import type { Completions } from "../cache/completions.ts";
import { answerFromCopy, type ClaimCommand, type ClaimOutcome } from "../domain/claim.ts";
import { type CompletedCopy, copyOf, type RecordId, recordName } from "../domain/record.ts";
import { type Reason, Refusal } from "../domain/refusal.ts";
import type { CopyTerms } from "../domain/tenant.ts";
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
import type { UsageMeter } from "../usage/meter.ts";
import { createBatch } from "./batch.ts";
import type { Answer, Call, Handlers } from "./call.ts";
import {
  claimResponse,
  completeResponse,
  extendLeaseResponse,
  lookupResponse,
  releaseResponse,
} from "./idempotency-replies.ts";
import {
  type ParsedClaim,
  parseClaim,
  parseComplete,
  parseExtendLease,
  parseLookup,
  parseRelease,
} from "./idempotency-requests.ts";
import type { Waiters } from "./waiters.ts";

/** The RPCs that a batch is made of. */
export interface SingleCalls {
  claim(request: ClaimRequest, call: Call): Answer<ClaimResponse>;
  complete(request: CompleteRequest, call: Call): Promise<CompleteResponse>;
  release(request: ReleaseRequest, call: Call): Promise<ReleaseResponse>;
  extendLease(request: ExtendLeaseRequest, call: Call): Promise<ExtendLeaseResponse>;
  lookup(request: LookupRequest, call: Call): Promise<LookupResponse>;
}

export interface IdempotencyOptions {
  readonly records: RecordStore;
  readonly admission: Admission;
  readonly completions: Completions;
  readonly waiters: Waiters;
  /** Wakes who waits for a record, on every replica, after it was settled here. */
  readonly onSettled: (name: string) => void;
  /** Told of every Claim that was answered, for the metrics. */
  readonly onClaim: (tenant: string, outcome: ClaimOutcome["kind"]) => void;
  readonly usage: UsageMeter;
}

/** A wait ends this long before the deadline, so that its answer still arrives. */
const REPLY_MARGIN_MS = 100;

/** IdempotencyService: what each RPC promises stands in `idempotency.proto`. */
export function createIdempotencyService(options: IdempotencyOptions): Handlers<typeof IdempotencyService> {
  const single = createSingleCalls(options);
  return { ...single, batch: createBatch(single) };
}

function createSingleCalls(options: IdempotencyOptions): SingleCalls {
  const { records, admission, completions, waiters, onSettled, onClaim, usage } = options;

  function findCopy({ id }: ClaimCommand, call: Call): Answer<CompletedCopy | undefined> {
    const terms = copyTerms(call);
    return terms && completions.find(id, terms);
  }

  /** Answers from a copy of the completed record if there is one; only Postgres grants, if `admit` lets it be asked. */
  async function claimOnce(
    command: ClaimCommand,
    call: Call,
    copy: Answer<CompletedCopy | undefined>,
    admit?: Admission["admitRecord"],
  ): Promise<ClaimOutcome> {
    const terms = copyTerms(call);
    const replay = replayOf(await copy, command);
    if (replay !== undefined) return replay;
    admit?.(call.principal);
    const outcome = await records.claim(command, call);
    if (isNewRecord(outcome)) admission.recordAdded(call.principal);
    completions.countAnswer(command.id, outcome.kind === "completed");
    if (outcome.kind === "completed") keep(command.id, outcome.record && copyOf(outcome.record), terms);
    return outcome;
  }

  function keep(id: RecordId, copy: CompletedCopy | undefined, terms: CopyTerms | undefined): void {
    if (copy !== undefined && terms !== undefined) completions.keep(id, copy, terms);
  }

  /** Looks again, and waits for as long as it may, while the record is in progress. */
  async function claimWaiting(
    { command, waitMs }: ParsedClaim,
    call: Call,
    copy: Answer<CompletedCopy | undefined>,
  ): Promise<ClaimResponse> {
    const waitUntilMs = Math.min(performance.now() + waitMs, call.atMs - REPLY_MARGIN_MS);
    try {
      let outcome = await claimOnce(command, call, copy, admission.admitRecord);
      while (outcome.kind === "inProgress") {
        const leftMs = waitUntilMs - performance.now();
        if (leftMs <= 0) break;
        await waiters.wait(command.id, leftMs, call.signal);
        // The record that was awaited is there: no quota of records keeps anybody from it.
        outcome = await claimOnce(command, call, findCopy(command, call));
      }
      return answered(command, call, outcome);
    } catch (error) {
      throw refused(command, error);
    }
  }

  function answered({ id }: ClaimCommand, call: Call, outcome: ClaimOutcome): ClaimResponse {
    onClaim(tenantName(call), outcome.kind);
    usage.claimed(id, outcome, databaseNowMs(call));
    return claimResponse(outcome);
  }

  /** Counts a key that is bound to another request. */
  function refused({ id }: ClaimCommand, error: unknown): unknown {
    if (isRefusal(error, "FINGERPRINT_MISMATCH")) usage.mismatched(id);
    return error;
  }

  /** Counts what a superseded claim was refused. */
  async function unlessFenced<Settled>(id: RecordId, settling: Promise<Settled>): Promise<Settled> {
    try {
      return await settling;
    } catch (error) {
      if (isRefusal(error, "CLAIM_SUPERSEDED")) usage.count(id, "fenced");
      throw error;
    }
  }

  return {
    claim(request, call) {
      admission.admitOperation(call.principal);
      const parsed = parseClaim(request, call.principal);
      const { command } = parsed;
      const copy = findCopy(command, call);
      if (copy === undefined || copy instanceof Promise) return claimWaiting(parsed, call, copy);
      let replay: ClaimOutcome | undefined;
      try {
        replay = replayOf(copy, command);
      } catch (error) {
        throw refused(command, error);
      }
      return replay === undefined ? claimWaiting(parsed, call, copy) : answered(command, call, replay);
    },

    async complete(request, call) {
      admission.countOperation(call.principal);
      const command = parseComplete(request, call.principal);
      const terms = copyTerms(call);
      const completion = await unlessFenced(command.id, records.complete(command, call));
      if (!completion.alreadyCompleted) {
        usage.count(command.id, "completions");
        admission.resultAdded(call.principal, command.result);
      }
      // First kept, then woken: so the waiters' claims are answered from the copy.
      keep(command.id, completion.copy, terms);
      onSettled(recordName(command.id));
      return completeResponse(completion);
    },

    async release(request, call) {
      admission.countOperation(call.principal);
      const command = parseRelease(request, call.principal);
      const release = await unlessFenced(command.id, records.release(command, call));
      onSettled(recordName(command.id));
      return releaseResponse(release);
    },

    async extendLease(request, call) {
      admission.countOperation(call.principal);
      const command = parseExtendLease(request, call.principal);
      return extendLeaseResponse(await unlessFenced(command.id, records.extendLease(command, call)));
    },

    async lookup(request, call) {
      admission.admitOperation(call.principal);
      return lookupResponse(await records.read(parseLookup(request, call.principal), call));
    },
  };
}

/** What a copy of a record answers; undefined if there is none. */
function replayOf(copy: CompletedCopy | undefined, command: ClaimCommand): ClaimOutcome | undefined {
  return copy && answerFromCopy(copy, command);
}

/** Or the row of an ended record made new, where the sweep had not come by yet: the next count of records tells. */
function isNewRecord(outcome: ClaimOutcome): boolean {
  return outcome.kind === "claimed" && !outcome.repeated && outcome.attempt === 1;
}

/** Taken before a statement runs: a copy of what it showed must not be found under a later generation. */
function copyTerms({ principal }: Call): CopyTerms | undefined {
  return principal.role === "OPERATOR" ? undefined : principal.tenant.copies;
}

function isRefusal(error: unknown, reason: Reason): boolean {
  return error instanceof Refusal && error.reason === reason;
}

/** What the database's clock says, to some milliseconds: as read when the tenant was, and what has passed since. */
function databaseNowMs(call: Call): number {
  const terms = copyTerms(call);
  return terms === undefined ? Number.NaN : terms.databaseTimeMs + performance.now() - terms.askedAtMs;
}

function tenantName({ principal }: Call): string {
  return principal.role === "OPERATOR" ? "" : principal.tenant.name;
}
