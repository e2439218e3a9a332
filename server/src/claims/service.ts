import { decisionDeadline, judgedInTime } from "../calls/authority.ts";
import type { Call, Handlers } from "../calls/call.ts";
import { withPolicies } from "../calls/load-policies.ts";
import type { Deadline } from "../domain/deadline.ts";
import { type RecordId, recordName } from "../domain/record.ts";
import { isRefusal } from "../domain/refusal.ts";
import { mapSettled, mapTogether, onlyValue, Rejected, type Settled } from "../domain/settled.ts";
import type { CompleteCommand, Completion } from "../domain/settlement.ts";
import { cacheEpochOf, type Principal } from "../domain/tenant.ts";
import type { BatchRequest, IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import type { RecordStore } from "../store/records/record-store.ts";
import { type Batchable, type BatchableCalls, createBatch } from "./batch.ts";
import { type ClaimsOptions, createClaims, databaseNowMs } from "./claim.ts";
import { completeResponse, extendLeaseResponse, lookupResponse, releaseResponse } from "./replies.ts";
import { parseComplete, parseExtendLease, parseLookup, parseRelease } from "./requests.ts";

export interface IdempotencyOptions extends ClaimsOptions {
  readonly records: RecordStore;
  /** Wakes who waits for a record, on every replica, after it was settled here. */
  readonly onSettled: (name: string) => void;
}

/** IdempotencyService: what each RPC promises stands in `idempotency.proto`. */
export function createIdempotencyService(options: IdempotencyOptions): Handlers<typeof IdempotencyService> {
  const { claim, claimAll } = createClaims(options);
  const settlements = createSettlements(options);
  return {
    claim: withPolicies(namespaceOf, claim),
    complete: withPolicies(namespaceOf, alone(settlements.complete)),
    release: alone(settlements.release),
    extendLease: withPolicies(namespaceOf, alone(settlements.extendLease)),
    lookup: alone(settlements.lookup),
    batch: withPolicies(namespacesOf, createBatch({ claim: claimAll, ...settlements })),
  };
}

function namespaceOf({ namespace }: { readonly namespace: string }): readonly string[] {
  return [namespace];
}

/** Those whose policies the items of a batch need. */
function namespacesOf({ items }: BatchRequest): readonly string[] {
  return items.flatMap(({ request }) => (request.case === undefined ? [] : [request.value.namespace]));
}

function createSettlements(options: IdempotencyOptions): Omit<BatchableCalls, "claim"> {
  const { records, admission, replayCache, onSettled, usage } = options;

  /** Counts what superseded claims were refused. */
  function countFenced<Value>(
    commands: readonly { readonly id: RecordId }[],
    settled: readonly Settled<Value>[],
  ): readonly Settled<Value>[] {
    for (const [place, { id }] of commands.entries()) {
      const end = settled[place];
      if (end instanceof Rejected && isRefusal(end.error, "CLAIM_SUPERSEDED")) usage.count(id, "fenced");
    }
    return settled;
  }

  function noteCompletion(
    { id, result }: CompleteCommand,
    completion: Completion,
    { principal }: Call,
  ): void {
    if (!completion.alreadyCompleted) {
      usage.count(id, "completions");
      admission.resultAdded(principal, result);
    }
    // First kept, then woken: so the waiters' claims are answered from the copy.
    const epoch = cacheEpochOf(principal);
    if (completion.copy && epoch) replayCache.keep(id, completion.copy, epoch);
    onSettled(recordName(id));
  }

  return {
    complete: forAll({
      admit: admission.countOperation,
      parse: parseComplete,
      run: async (commands, deadline) => countFenced(commands, await records.complete(commands, deadline)),
      answer(completion, command, call) {
        noteCompletion(command, completion, call);
        return completeResponse(completion);
      },
    }),
    release: forAll({
      admit: admission.countOperation,
      parse: parseRelease,
      run: async (commands, deadline) => countFenced(commands, await records.release(commands, deadline)),
      answer(release, { id }) {
        onSettled(recordName(id));
        return releaseResponse(release);
      },
    }),
    extendLease: forAll({
      admit: admission.countOperation,
      parse: parseExtendLease,
      run: async (commands, deadline) => countFenced(commands, await records.extendLease(commands, deadline)),
      answer: extendLeaseResponse,
    }),
    lookup: forAll({
      admit: admission.admitOperation,
      parse: parseLookup,
      run: records.read,
      answer: (record, _, call) => lookupResponse(record, databaseNowMs(call)),
    }),
  };
}

/** What an RPC does with each of its requests, but for running them, which is done with all of them at once. */
interface Steps<Request, Command, Outcome, Response> {
  readonly admit: (principal: Principal) => void;
  readonly parse: (request: Request, principal: Principal) => Command;
  readonly run: (commands: readonly Command[], deadline: Deadline) => Promise<readonly Settled<Outcome>[]>;
  readonly answer: (outcome: Outcome, command: Command, call: Call) => Response;
}

/** Answers many requests, each in its place and by what holds when it is decided. */
function forAll<Request extends { readonly namespace: string }, Command, Outcome, Response>(
  steps: Steps<Request, Command, Outcome, Response>,
): Batchable<Request, Response> {
  return judgedInTime(async (requests, call) => {
    const commands = mapSettled(requests, (request) => {
      steps.admit(call.principal);
      return steps.parse(request, call.principal);
    });
    const outcomes = await mapTogether(commands, (values) => steps.run(values, decisionDeadline(call)));
    return mapSettled(outcomes, (outcome, place) => steps.answer(outcome, commands[place] as Command, call));
  });
}

/** Answers one request as if it were all there are. */
function alone<Request, Response>(
  all: Batchable<Request, Response>,
): (request: Request, call: Call) => Promise<Response> {
  return async (request, call) => onlyValue(await all([request], call));
}
