import type { Admission } from "../../access/admission.ts";
import {
  databaseNowMs,
  expiredInQueue,
  isOutdated,
  parseWithPolicies,
  statementDeadline,
  withCurrentPrincipal,
} from "../../access/authority.ts";
import type { Answer, BatchHandler, Call } from "../../access/call.ts";
import { mapSettled, mapTogether, onlyValue, Rejected, type Settled } from "../../domain/operation.ts";
import { reasonName, refusalClass } from "../../domain/refusal.ts";
import { cacheEpochOf } from "../../domain/tenant.ts";
import { ReasonClass } from "../../gen/onceward/v1/facts_pb.ts";
import type { ClaimRequest, ClaimResponse } from "../../gen/onceward/v1/idempotency_pb.ts";
import { counted, type OnOperation, type OperationHooks } from "../after-operation.ts";
import {
  answerFromCompletion,
  type CachedCompletion,
  type ClaimCommand,
  type ClaimOutcome,
  cachedCompletionOf,
} from "../record.ts";
import type { RecordStore } from "../record-store.ts";
import type { ReplayCache } from "../replay/replay-cache.ts";
import { type Decide, decideUntil, waitEndMs } from "./claim-waiting.ts";
import { type AdmitRecord, claimWithinQuota } from "./claim-within-quota.ts";
import { claimResponse, type ParsedClaim, parseClaim } from "./messages.ts";
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

/** Creates the handlers of claims: from cached completions where there are any, and else from Postgres, which alone grants. */
export function createClaims(options: ClaimsOptions) {
  const { admission, waiters, onOperation } = options;
  const decide = createDecide(options);
  const answer = createAnswer(options);

  function claim(request: ClaimRequest, call: Call): Answer<ClaimResponse> {
    const refuse = (error: unknown) => end(request, [new Rejected(error)], call);
    if (isOutdated(call)) return call.again().then((current) => claim(request, current), refuse);
    try {
      admission.admitOperation(call.principal, request.namespace);
    } catch (error) {
      return refuse(error);
    }
    const parsed = parseWithPolicies([request], call, parseClaim);
    if (!(parsed instanceof Promise)) return claimParsed(request, parsed, call);
    return parsed.then((all) => (isOutdated(call) ? claim(request, call) : claimParsed(request, all, call)));
  }

  function claimParsed(
    request: ClaimRequest,
    [parsed]: readonly Settled<ParsedClaim>[],
    call: Call,
  ): Answer<ClaimResponse> {
    if (parsed === undefined || parsed instanceof Rejected) return end(request, [parsed as Rejected], call);
    const outcomes = decide([parsed.command], call, admission.admitRecord);
    return outcomes instanceof Promise
      ? answerDecided(request, parsed, call, outcomes)
      : end(request, answer([parsed.command], call, outcomes), call);
  }

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

  async function answerDecided(
    request: ClaimRequest,
    { command, waitMs }: ParsedClaim,
    call: Call,
    outcomes: Promise<readonly Settled<ClaimOutcome>[]>,
  ): Promise<ClaimResponse> {
    const untilMs = waitMs > 0 ? waitEndMs(call, waitMs) : 0;
    const [outcome] = (await outcomes) as [Settled<ClaimOutcome>];
    const first = { command, call, outcome };
    const isFinal =
      outcome instanceof Rejected ? !expiredInQueue(outcome, call) : outcome.kind !== "inProgress";
    if (isFinal) return end(request, answer([command], call, [outcome]), call);
    const decidedAtMs = performance.now();
    let settled: readonly Settled<ClaimResponse>[];
    try {
      const last = await decideUntil(untilMs, request, first, { waiters, admission, decide });
      settled = answer([last.command], last.call, [last.outcome]);
    } catch (error) {
      settled = [new Rejected(error)];
    }
    return end(request, settled, call, decidedAtMs);
  }

  return {
    /** Answers one claim, which may wait for its record. */
    claim,
    /** Answers claims that do not wait, as if each arrived right after the one before it. */
    claimAll: counted({
      kind: "claim",
      onOperation,
      outcomeOf: outcomeName,
      handle: withCurrentPrincipal(createClaimAll(admission, decide, answer)),
    }),
  };
}

/** Returns the handler of claims that do not wait. */
function createClaimAll(
  admission: Admission,
  decide: Decide,
  answer: ReturnType<typeof createAnswer>,
): BatchHandler<ClaimRequest, ClaimResponse> {
  return async (requests, call) => {
    const admitted = mapSettled(requests, (request) => {
      admission.admitOperation(call.principal, request.namespace);
      return request;
    });
    const parsed = await parseWithPolicies(admitted, call, parseClaim);
    const commands = mapSettled(parsed, ({ command }) => command);
    return answer(commands, call, await decide(commands, call, admission.admitRecord));
  };
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

function createDecide({ records, admission, replayCache }: ClaimsOptions): Decide {
  function findCompletions(
    commands: readonly Settled<ClaimCommand>[],
    call: Call,
  ): Answer<readonly (CachedCompletion | undefined)[]> {
    const epoch = cacheEpochOf(call.principal);
    let isAsync = false;
    const found = commands.map((command) => {
      if (command instanceof Rejected || epoch === undefined) return undefined;
      const completion = replayCache.find(command.id, epoch);
      isAsync ||= completion instanceof Promise;
      return completion;
    });
    return isAsync ? Promise.all(found) : (found as readonly (CachedCompletion | undefined)[]);
  }

  /** Executes those claims together that have no replay. */
  async function execute(
    commands: readonly Settled<ClaimCommand>[],
    replays: readonly Settled<ClaimOutcome | undefined>[],
    call: Call,
    admit: AdmitRecord,
  ): Promise<readonly Settled<ClaimOutcome>[]> {
    const withoutReplay = commands.filter((_, index) => replays[index] === undefined);
    const executed = await mapTogether(withoutReplay, async (commands) => {
      const outcomes = admission.countsRecords(call.principal)
        ? await claimWithinQuota({ records, admission, admit }, commands, call)
        : await records.claim(commands, statementDeadline(call));
      return mapSettled(outcomes, (outcome, index) =>
        keepCompletion(commands[index] as ClaimCommand, call, outcome),
      );
    });
    let next = 0;
    return replays.map((replay) => replay ?? (executed[next++] as Settled<ClaimOutcome>));
  }

  /** Caches the record of an outcome that Postgres decided, if the record is completed. */
  function keepCompletion({ id }: ClaimCommand, { principal }: Call, outcome: ClaimOutcome): ClaimOutcome {
    replayCache.countAnswer(id, outcome.kind === "completed");
    // The epoch of when the call arrived: a record that was read then must not be found under a later generation.
    const epoch = cacheEpochOf(principal);
    const isCompleted = outcome.kind === "completed" || outcome.kind === "recorded";
    const completion = isCompleted && outcome.record && cachedCompletionOf(outcome.record);
    if (completion && epoch) replayCache.keep(id, completion, epoch);
    return outcome;
  }

  return (commands, call, admit) => {
    const decideWith = (completions: readonly (CachedCompletion | undefined)[]) => {
      const replays = mapSettled(commands, (command, index) => {
        const completion = completions[index];
        return completion && answerFromCompletion(completion, command);
      });
      return replays.includes(undefined)
        ? execute(commands, replays, call, admit)
        : (replays as readonly Settled<ClaimOutcome>[]);
    };
    const completions = findCompletions(commands, call);
    return completions instanceof Promise ? completions.then(decideWith) : decideWith(completions);
  };
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
    commands.forEach((command, index) => {
      if (command instanceof Rejected) return;
      const outcome = outcomes[index] as Settled<ClaimOutcome>;
      if (!(outcome instanceof Rejected)) {
        onClaim(tenantId, labelOf(outcome.kind));
        usage.claimed(command, outcome, nowMs);
        if (outcome.kind === "recorded" && !outcome.repeated) usage.count(command.id, "completions");
        return;
      }
      const refusal = refusalClass(outcome.error);
      if (refusal === ReasonClass.REUSED) usage.refused(command.id, "mismatches");
      else if (refusal === ReasonClass.TOO_OLD) usage.refused(command.id, "late_keys_refused");
    });
    return mapSettled(outcomes, (outcome) => claimResponse(outcome, nowMs));
  };
}
