import type { Admission } from "../../access/admission.ts";
import {
  expiredInQueue,
  isOutdated,
  statementDeadline,
  withCurrentPrincipal,
  withLoadedPolicies,
} from "../../access/authority.ts";
import type { Answer, BatchHandler, Call } from "../../access/call.ts";
import { mapSettled, onlyValue, Rejected, type Settled } from "../../domain/operation.ts";
import { reasonName, refusalClass } from "../../domain/refusal.ts";
import { type CacheEpoch, cacheEpochOf, databaseNowMs } from "../../domain/tenant.ts";
import { ReasonClass } from "../../gen/onceward/v1/facts_pb.ts";
import type { ClaimRequest, ClaimResponse } from "../../gen/onceward/v1/idempotency_pb.ts";
import { counted, type OnOperation, type OperationHooks } from "../after-operation.ts";
import {
  answerFromCompletion,
  type ClaimCommand,
  type ClaimOutcome,
  cachedCompletionOf,
  type RecordId,
} from "../record.ts";
import type { RecordStore } from "../record-store.ts";
import type { ReplayCache } from "../replay/replay-cache.ts";
import { type Decide, decideUntil, waitEndMs } from "./claim-waiting.ts";
import { type AdmitRecord, claimWithinQuota } from "./claim-within-quota.ts";
import { claimResponse, parseClaim } from "./messages.ts";
import type { Waiters } from "./waiters.ts";

export interface ClaimsOptions {
  readonly records: Pick<RecordStore, "claim" | "read">;
  readonly admission: Admission;
  readonly replayCache: ReplayCache;
  readonly waiters: Waiters;
  /** Receives the outcome of every claim that was answered, for the metrics. */
  readonly onClaim: (tenantId: number, outcome: string) => void;
  readonly onOperation: OnOperation;
  readonly usage: OperationHooks;
}

/** The outcome of each claim that a cached completion answers, at its index; undefined: it is not cached. */
type Replays = readonly (Settled<ClaimOutcome> | undefined)[];

/** Creates the handlers of claims: from cached completions where there are any, and else from Postgres, which alone grants. */
export function createClaims(options: ClaimsOptions) {
  const steps = createClaimSteps(options);
  const { begin, decide, answer } = steps;
  const { admission, onOperation } = options;
  const handle: BatchHandler<ClaimRequest, ClaimResponse> = async (requests, call) => {
    const commands = await withLoadedPolicies(requests, begin(requests, call), call, parseClaim);
    return answer(commands, call, await decide(commands, call, admission.admitRecord));
  };
  return {
    /** Answers one claim, which may wait for its record. */
    claim: createClaim(options, steps),
    /** Answers claims that do not wait, as if each arrived right after the one before it. */
    claimAll: counted({
      kind: "claim",
      onOperation,
      outcomeOf: outcomeName,
      handle: withCurrentPrincipal(handle),
    }),
  };
}

/** Returns the handler of single claims. */
function createClaim(
  { admission, waiters, onOperation }: ClaimsOptions,
  { begin, replay, decideRest, decide, answer }: ReturnType<typeof createClaimSteps>,
) {
  /** Reports the outcome of a single claim, and returns its response or throws its error. */
  function end(
    request: ClaimRequest,
    settled: readonly Settled<ClaimResponse>[],
    call: Call,
    decidedAtMs = performance.now(),
  ): ClaimResponse {
    const [only] = settled;
    const outcome = only instanceof Rejected ? reasonName(only.error) : outcomeName(only as ClaimResponse);
    onOperation("claim", outcome, decidedAtMs - call.receivedAtMs, request, call);
    return onlyValue(settled);
  }

  /** Answers a claim from memory, at once; every other claim is decided as a batch of one. */
  function claim(request: ClaimRequest, call: Call): Answer<ClaimResponse> {
    if (isOutdated(call)) return claimAgain(request, call);
    const begun = begin([request], call);
    const [found] = replay(begun, call);
    if (found === undefined || found instanceof Rejected) return claimAndWait(request, begun, found, call);
    return end(request, answer(begun, call, [found]), call);
  }

  async function claimAgain(request: ClaimRequest, call: Call): Promise<ClaimResponse> {
    let current: Call;
    try {
      current = await call.again();
    } catch (error) {
      return end(request, [new Rejected(error)], call);
    }
    return await claim(request, current);
  }

  /** Decides a claim, and again while its record is in progress, for as long as the claim waits. */
  async function claimAndWait(
    request: ClaimRequest,
    begun: readonly Settled<ClaimCommand>[],
    found: Replays[number],
    call: Call,
  ): Promise<ClaimResponse> {
    const parsed = await withLoadedPolicies([request], begun, call, parseClaim);
    const [command] = parsed as [Settled<ClaimCommand>];
    if (command instanceof Rejected) {
      // The load of a policy took until the principal had expired.
      if (expiredInQueue(command, call)) return await claimAgain(request, call);
      return end(request, [command], call);
    }
    const untilMs = command.waitMs > 0 ? waitEndMs(call, command.waitMs) : 0;
    const replays = begun === parsed ? [found] : replay(parsed, call);
    const [outcome] = (await decideRest(parsed, replays, call, admission.admitRecord)) as [
      Settled<ClaimOutcome>,
    ];
    const isFinal =
      outcome instanceof Rejected ? !expiredInQueue(outcome, call) : outcome.kind !== "inProgress";
    if (isFinal) return end(request, answer([command], call, [outcome]), call);
    const decidedAtMs = performance.now();
    let settled: readonly Settled<ClaimResponse>[];
    try {
      const first = { command, call, outcome };
      const last = await decideUntil(untilMs, request, first, { waiters, admission, decide });
      settled = answer([last.command], last.call, [last.outcome]);
    } catch (error) {
      settled = [new Rejected(error)];
    }
    return end(request, settled, call, decidedAtMs);
  }

  return claim;
}

/** Returns a claim's outcome as metrics name it. */
function outcomeName({ outcome }: ClaimResponse): string {
  switch (outcome.case) {
    case "claimed":
      return outcome.value.attempt > 1 ? "reclaimed" : "claimed";
    case "inProgress":
    case "completed":
    case "recorded":
    case "ambiguous":
      return labelOf(outcome.case);
    case undefined:
      throw new Error("the response of a claim has no outcome");
  }
}

/** Returns an outcome's kind as metrics name it. */
function labelOf(kind: ClaimOutcome["kind"]): string {
  return kind === "inProgress" ? "in_progress" : kind;
}

/** Returns the steps of claims, of one or of many. */
function createClaimSteps(options: ClaimsOptions) {
  const { admission, replayCache } = options;
  const decideRest = createDecideRest(options);

  /** Admits and parses claims; each whose policy is not loaded is rejected with PolicyNotLoaded. */
  function begin(requests: readonly Settled<ClaimRequest>[], call: Call): readonly Settled<ClaimCommand>[] {
    return mapSettled(requests, (request) => {
      admission.admitOperation(call.principal, request.namespace);
      return parseClaim(request, call.principal);
    });
  }

  /** Answers the claims whose completions are in memory. */
  function replay(commands: readonly Settled<ClaimCommand>[], call: Call): Replays {
    const epoch = cacheEpochOf(call.principal);
    return mapSettled(commands, (command) => {
      const completion = epoch && replayCache.findInMemory(command.id, epoch);
      return completion && answerFromCompletion(completion, command);
    });
  }

  const decide: Decide = (commands, call, admit) => decideRest(commands, replay(commands, call), call, admit);
  return { begin, replay, decideRest, decide, answer: createAnswer(options) };
}

/** Returns a function that decides those claims that memory did not answer: from Redis, and the others together in Postgres. */
function createDecideRest({ records, admission, replayCache }: ClaimsOptions) {
  async function findInRedis(
    commands: readonly Settled<ClaimCommand>[],
    replays: Replays,
    epoch: CacheEpoch,
  ): Promise<Replays> {
    const lookups = commands.map((command, index) =>
      replays[index] !== undefined || command instanceof Rejected
        ? undefined
        : replayCache.findInRedis(command.id, epoch),
    );
    if (lookups.every((lookup) => lookup === undefined)) return replays;
    const found = await Promise.all(lookups);
    return mapSettled(commands, (command, index) => {
      const completion = found[index];
      return replays[index] ?? (completion && answerFromCompletion(completion, command));
    });
  }

  /** Caches the record of an outcome that Postgres decided, if the record is completed. */
  function keepCompletion(id: RecordId, outcome: ClaimOutcome, epoch: CacheEpoch): void {
    replayCache.countAnswer(id, outcome.kind === "completed");
    const isCompleted = outcome.kind === "completed" || outcome.kind === "recorded";
    const completion = isCompleted && outcome.record && cachedCompletionOf(outcome.record);
    if (completion) replayCache.keep(id, completion, epoch);
  }

  return async (
    commands: readonly Settled<ClaimCommand>[],
    inMemory: Replays,
    call: Call,
    admit: AdmitRecord,
  ): Promise<readonly Settled<ClaimOutcome>[]> => {
    if (areComplete(inMemory)) return inMemory;
    // The epoch of when the call arrived: a record that was read then must not be found under a later generation.
    const epoch = cacheEpochOf(call.principal);
    const replays = epoch === undefined ? inMemory : await findInRedis(commands, inMemory, epoch);
    if (areComplete(replays)) return replays;
    // A rejected command has its rejection as its replay.
    const rest = commands.filter((_, index) => replays[index] === undefined) as ClaimCommand[];
    const outcomes = admission.countsRecords(call.principal)
      ? await claimWithinQuota({ records, admission, admit }, rest, call)
      : await records.claim(rest, statementDeadline(call));
    for (const [index, { id }] of rest.entries()) {
      const outcome = outcomes[index] as Settled<ClaimOutcome>;
      if (!(outcome instanceof Rejected) && epoch) keepCompletion(id, outcome, epoch);
    }
    let next = 0;
    return replays.map((replay) => replay ?? (outcomes[next++] as Settled<ClaimOutcome>));
  };
}

function areComplete(replays: Replays): replays is readonly Settled<ClaimOutcome>[] {
  return !replays.includes(undefined);
}

/** Counts the outcomes of claims, and returns their responses. */
function createAnswer({ onClaim, usage }: ClaimsOptions) {
  return (
    commands: readonly Settled<ClaimCommand>[],
    call: Call,
    outcomes: readonly Settled<ClaimOutcome>[],
  ): readonly Settled<ClaimResponse>[] => {
    const { principal } = call;
    const tenantId = principal.role === "OPERATOR" ? 0 : principal.tenant.id;
    const nowMs = databaseNowMs(principal);
    return outcomes.map((outcome, index) => {
      const command = commands[index] as Settled<ClaimCommand>;
      if (command instanceof Rejected) return command;
      if (outcome instanceof Rejected) {
        const refusal = refusalClass(outcome.error);
        if (refusal === ReasonClass.REUSED) usage.refused(command.id, "mismatches");
        else if (refusal === ReasonClass.TOO_OLD) usage.refused(command.id, "late_keys_refused");
        return outcome;
      }
      onClaim(tenantId, labelOf(outcome.kind));
      usage.claimed(command, outcome, nowMs);
      if (outcome.kind === "recorded" && !outcome.repeated) usage.count(command.id, "completions");
      return claimResponse(outcome, nowMs);
    });
  };
}
