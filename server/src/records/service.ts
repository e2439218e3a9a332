import {
  databaseNowMs,
  parseWithPolicies,
  statementDeadline,
  withCurrentPrincipal,
} from "../core/calls/authority.ts";
import type { BatchHandler, Call, Handlers } from "../core/calls/call.ts";
import {
  type Deadline,
  mapSettled,
  mapTogether,
  type OperationKind,
  onlyValue,
  Rejected,
  type Settled,
} from "../core/domain/operation.ts";
import { isRefusal } from "../core/domain/refusal.ts";
import { cacheEpochOf, type Principal } from "../core/domain/tenant.ts";
import type { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { counted, type NamedRecord } from "./after-operation.ts";
import { type BatchHandlers, createBatch } from "./batch/batch.ts";
import { type ClaimsOptions, createClaims } from "./claim/claim.ts";
import {
  completeResponse,
  extendLeaseResponse,
  lookupResponse,
  parseComplete,
  parseExtendLease,
  parseLookup,
  parseRelease,
  releaseResponse,
} from "./messages.ts";
import { type RecordId, recordName } from "./record.ts";
import type { RecordStore } from "./record-store.ts";
import type { CompleteCommand, Completion } from "./settlement.ts";

export interface IdempotencyOptions extends ClaimsOptions {
  readonly records: RecordStore;
  /** Wakes the calls that wait for a record, on every replica, after it was settled here. */
  readonly onSettled: (name: string) => void;
}

/** Returns IdempotencyService. `idempotency.proto` describes each RPC. */
export function createIdempotencyService(options: IdempotencyOptions): Handlers<typeof IdempotencyService> {
  const { claim, claimAll } = createClaims(options);
  const settlements = createSettlements(options);
  return {
    claim,
    complete: single(settlements.complete),
    release: single(settlements.release),
    extendLease: single(settlements.extendLease),
    lookup: single(settlements.lookup),
    batch: createBatch({ claim: claimAll, ...settlements }),
  };
}

function createSettlements(options: IdempotencyOptions): Omit<BatchHandlers, "claim"> {
  const { records, admission, replayCache, onSettled, onOperation, usage } = options;

  /** Counts the refusals of superseded claims. */
  function countFenced<Value>(
    commands: readonly { readonly id: RecordId }[],
    settled: readonly Settled<Value>[],
  ): readonly Settled<Value>[] {
    for (const [index, { id }] of commands.entries()) {
      const each = settled[index];
      if (each instanceof Rejected && isRefusal(each.error, "CLAIM_SUPERSEDED")) usage.count(id, "fenced");
    }
    return settled;
  }

  function onCompleted({ id, result }: CompleteCommand, completion: Completion, { principal }: Call): void {
    if (!completion.alreadyCompleted) {
      usage.count(id, "completions");
      admission.resultAdded(principal, result);
    }
    // Cached before waiters are woken, so that their claims are answered from the cache.
    const epoch = cacheEpochOf(principal);
    if (completion.copy && epoch) replayCache.keep(id, completion.copy, epoch);
    onSettled(recordName(id));
  }

  /** Returns a handler of many requests that takes each through the steps, and reports its outcome. */
  function handler<Request extends NamedRecord, Command, Outcome, Response>(
    steps: Steps<Request, Command, Outcome, Response>,
  ): BatchHandler<Request, Response> {
    const { kind, outcomeOf } = steps;
    return counted({ kind, onOperation, outcomeOf, handle: withCurrentPrincipal(forAll(steps)) });
  }

  return {
    complete: handler({
      kind: "complete",
      outcomeOf: ({ alreadyCompleted }) => (alreadyCompleted ? "repeated" : "completed"),
      admit: admission.countOperation,
      parse: parseComplete,
      run: async (commands, deadline) => countFenced(commands, await records.complete(commands, deadline)),
      answer(completion, command, call) {
        onCompleted(command, completion, call);
        return completeResponse(completion);
      },
    }),
    release: handler({
      kind: "release",
      outcomeOf: () => "released",
      admit: admission.countOperation,
      parse: parseRelease,
      run: async (commands, deadline) => countFenced(commands, await records.release(commands, deadline)),
      answer(release, { id }) {
        onSettled(recordName(id));
        return releaseResponse(release);
      },
    }),
    extendLease: handler({
      kind: "extend_lease",
      outcomeOf: () => "extended",
      admit: admission.countOperation,
      parse: parseExtendLease,
      run: async (commands, deadline) => countFenced(commands, await records.extendLease(commands, deadline)),
      answer: extendLeaseResponse,
    }),
    lookup: handler({
      kind: "lookup",
      outcomeOf: ({ record }) => (record === undefined ? "not_found" : "found"),
      admit: admission.admitOperation,
      parse: parseLookup,
      run: records.read,
      answer: (record, _, call) => lookupResponse(record, databaseNowMs(call.principal)),
    }),
  };
}

/** The steps of an RPC, in their order. `run` executes all requests at once; the others take one request each. */
interface Steps<Request, Command, Outcome, Response> {
  readonly kind: OperationKind;
  /** Returns the outcome of an operation as metrics name it. */
  readonly outcomeOf: (response: Response) => string;
  readonly admit: (principal: Principal, namespace: string) => void;
  readonly parse: (request: Request, principal: Principal) => Command;
  readonly run: (commands: readonly Command[], deadline: Deadline) => Promise<readonly Settled<Outcome>[]>;
  readonly answer: (outcome: Outcome, command: Command, call: Call) => Response;
}

/** Returns a handler that takes requests through the steps, for one principal. */
function forAll<Request extends NamedRecord, Command, Outcome, Response>(
  steps: Steps<Request, Command, Outcome, Response>,
): BatchHandler<Request, Response> {
  return async (requests, call) => {
    const admitted = mapSettled(requests, (request) => {
      steps.admit(call.principal, request.namespace);
      return request;
    });
    const commands = await parseWithPolicies(admitted, call, steps.parse);
    const outcomes = await mapTogether(commands, (values) => steps.run(values, statementDeadline(call)));
    return mapSettled(outcomes, (outcome, index) => steps.answer(outcome, commands[index] as Command, call));
  };
}

/** Returns a handler of single requests. */
function single<Request, Response>(
  handleAll: BatchHandler<Request, Response>,
): (request: Request, call: Call) => Promise<Response> {
  return async (request, call) => onlyValue(await handleAll([request], call));
}
