import type { Admission } from "../admission/admission.ts";
import type { UsageMeter } from "../background/usage-meter.ts";
import type { ReplayCache } from "../cache/replay-cache.ts";
import { isOutdated, isUndecided, judgeAgain, judgedInTime } from "../calls/authority.ts";
import type { Answer, Call } from "../calls/call.ts";
import { answerFromCopy, type ClaimCommand, type ClaimOutcome } from "../domain/claim.ts";
import { type CachedCompletion, cachedCompletionOf } from "../domain/record.ts";
import { isRefusal, Refusal } from "../domain/refusal.ts";
import { mapSettled, mapTogether, onlyValue, Rejected, type Settled } from "../domain/settled.ts";
import { cacheEpochOf } from "../domain/tenant.ts";
import type { ClaimRequest, ClaimResponse } from "../gen/onceward/v1/idempotency_pb.ts";
import type { RecordStore } from "../store/records/record-store.ts";
import { type AdmitRecord, claimWithinQuota } from "./claim-within-quota.ts";
import { claimResponse } from "./replies.ts";
import { type ParsedClaim, parseClaim } from "./requests.ts";
import type { Waiters } from "./waiters.ts";

/** Answers claims: from copies of completed records where there are any, and else from Postgres, which alone grants. */
export interface Claims {
  /** One claim, which may wait for its record. */
  claim(request: ClaimRequest, call: Call): Answer<ClaimResponse>;
  /** Claims that do not wait, as if each came right after the one before it; every one ends by itself, in its place. */
  claimAll(requests: readonly Settled<ClaimRequest>[], call: Call): Answer<readonly Settled<ClaimResponse>[]>;
}

export interface ClaimsOptions {
  readonly records: Pick<RecordStore, "claim" | "read">;
  readonly admission: Admission;
  readonly replayCache: ReplayCache;
  readonly waiters: Waiters;
  /** Told of every Claim that was answered, for the metrics. */
  readonly onClaim: (tenant: string, outcome: ClaimOutcome["kind"]) => void;
  readonly usage: UsageMeter;
}

/**
 * A wait ends before the call's deadline, so that the last look at the record and the reply still arrive in time: by a
 * tenth of the time that is left, which is bounded because a busy machine is late by the same time whatever the deadline.
 */
const REPLY_MARGIN = { share: 0.1, minMs: 250, maxMs: 1000 };

/** @see Claims */
export function createClaims(options: ClaimsOptions): Claims {
  const { records, admission, replayCache, waiters, onClaim, usage } = options;

  /** Decides claims, at once where there is a copy for each; `admit` admits those that Postgres has to be asked about. */
  function decide(
    commands: readonly Settled<ClaimCommand>[],
    call: Call,
    admit: AdmitRecord,
  ): Answer<readonly Settled<ClaimOutcome>[]> {
    const decideFrom = (copies: readonly (CachedCompletion | undefined)[]) => {
      const replays = mapSettled(commands, (command, place) => replayOf(copies[place], command));
      return replays.includes(undefined)
        ? askPostgres(commands, replays, call, admit)
        : (replays as readonly Settled<ClaimOutcome>[]);
    };
    const copies = findCopies(commands, call);
    return copies instanceof Promise ? copies.then(decideFrom) : decideFrom(copies);
  }

  function findCopies(
    commands: readonly Settled<ClaimCommand>[],
    call: Call,
  ): Answer<readonly (CachedCompletion | undefined)[]> {
    const epoch = cacheEpochOf(call.principal);
    let looking = false;
    const copies = commands.map((command) => {
      if (command instanceof Rejected || epoch === undefined) return undefined;
      const copy = replayCache.find(command.id, epoch);
      looking ||= copy instanceof Promise;
      return copy;
    });
    return looking ? Promise.all(copies) : (copies as readonly (CachedCompletion | undefined)[]);
  }

  /** Asks about those claims together that have no replay. */
  async function askPostgres(
    commands: readonly Settled<ClaimCommand>[],
    replays: readonly Settled<ClaimOutcome | undefined>[],
    call: Call,
    admit: AdmitRecord,
  ): Promise<readonly Settled<ClaimOutcome>[]> {
    const unknown = commands.filter((_, place) => replays[place] === undefined);
    const asked = await mapTogether(unknown, async (commands) => {
      const outcomes = await claimWithinQuota({ records, admission, admit, isNew }, commands, call);
      return mapSettled(outcomes, (outcome, place) => noted(commands[place] as ClaimCommand, call, outcome));
    });
    let next = 0;
    return replays.map((replay) => replay ?? (asked[next++] as Settled<ClaimOutcome>));
  }

  /** An outcome that Postgres decided. */
  function noted({ id }: ClaimCommand, { principal }: Call, outcome: ClaimOutcome): ClaimOutcome {
    replayCache.countAnswer(id, outcome.kind === "completed");
    // The epoch of when the call came: a copy of what a statement showed must not be found under a later generation.
    const epoch = cacheEpochOf(principal);
    const copy = outcome.kind === "completed" && outcome.record && cachedCompletionOf(outcome.record);
    if (copy && epoch) replayCache.keep(id, copy, epoch);
    return outcome;
  }

  /**
   * Looks again while the record is in progress, and waits for as long as it may. Each look is a claim that comes at that
   * moment: its caller, its quotas and its policy are those in force then.
   */
  async function answerResolved(
    request: ClaimRequest,
    { command, waitMs }: ParsedClaim,
    call: Call,
    first: Promise<readonly Settled<ClaimOutcome>[]>,
  ): Promise<ClaimResponse> {
    const waitUntilMs = Math.min(performance.now() + waitMs, lastLookMs(call));
    let look = { command, call, outcomes: await first };
    let admit: AdmitRecord = admission.admitRecord;
    for (;;) {
      if (look.outcomes.some(isInProgress)) {
        const leftMs = waitUntilMs - performance.now();
        if (leftMs <= 0) break;
        const { call } = look;
        await waiters.wait(look.command.id, leftMs, call.signal, () => checkStillAllowed(request, call));
        // The record that was awaited is there: no quota of records keeps anybody from it.
        admit = admission.expectRecord;
      } else if (!look.outcomes.some((outcome) => isUndecided(outcome, look.call))) break;
      look = await lookAgain(request, look.call, admit);
    }
    return onlyValue(answer([look.command], look.call, look.outcomes));
  }

  async function lookAgain(request: ClaimRequest, before: Call, admit: AdmitRecord) {
    const call = await judgeAgain(before, [request.namespace]);
    admission.admitOperation(call.principal);
    const { command } = parseClaim(request, call.principal);
    return { command, call, outcomes: await decide([command], call, admit) };
  }

  function answer(
    commands: readonly Settled<ClaimCommand>[],
    call: Call,
    outcomes: readonly Settled<ClaimOutcome>[],
  ): readonly Settled<ClaimResponse>[] {
    const tenant = tenantName(call);
    const nowMs = databaseNowMs(call);
    commands.forEach((command, place) => {
      if (command instanceof Rejected) return;
      const outcome = outcomes[place] as Settled<ClaimOutcome>;
      if (!(outcome instanceof Rejected)) {
        onClaim(tenant, outcome.kind);
        usage.claimed(command.id, outcome, nowMs);
      } else if (isRefusal(outcome.error, "FINGERPRINT_MISMATCH")) usage.mismatched(command.id);
    });
    return mapSettled(outcomes, (outcome) => claimResponse(outcome, nowMs));
  }

  function claim(request: ClaimRequest, call: Call): Answer<ClaimResponse> {
    admission.admitOperation(call.principal);
    const parsed = parseClaim(request, call.principal);
    const outcomes = decide([parsed.command], call, admission.admitRecord);
    return outcomes instanceof Promise
      ? answerResolved(request, parsed, call, outcomes)
      : onlyValue(answer([parsed.command], call, outcomes));
  }

  return {
    claim: (request, call) =>
      isOutdated(call)
        ? judgeAgain(call, [request.namespace]).then((now) => claim(request, now))
        : claim(request, call),

    claimAll: judgedInTime((requests, call) => {
      const commands = mapSettled(requests, (request) => {
        admission.admitOperation(call.principal);
        return parseClaim(request, call.principal).command;
      });
      const outcomes = decide(commands, call, admission.admitRecord);
      return outcomes instanceof Promise
        ? outcomes.then((decided) => answer(commands, call, decided))
        : answer(commands, call, outcomes);
    }),
  };
}

/** What a copy of a record answers; undefined if there is none. */
function replayOf(copy: CachedCompletion | undefined, command: ClaimCommand): ClaimOutcome | undefined {
  return copy && answerFromCopy(copy, command);
}

/** Or the row of an expired record made new, where the sweep had not come by yet: the next count of records tells. */
function isNew(outcome: ClaimOutcome): boolean {
  return outcome.kind === "claimed" && !outcome.repeated && outcome.attempt === 1;
}

function isInProgress(outcome: Settled<ClaimOutcome>): boolean {
  return !(outcome instanceof Rejected) && outcome.kind === "inProgress";
}

/**
 * Checks whether a claim may go on waiting: whether it would be taken if it came now. Where that can't be told at the moment, it
 * may: it is judged again when it is woken.
 *
 * @throws Refusal as a call is refused that comes now.
 */
async function checkStillAllowed(request: ClaimRequest, call: Call): Promise<void> {
  try {
    const { principal } = await judgeAgain(call, [request.namespace]);
    if (principal !== call.principal) parseClaim(request, principal);
  } catch (error) {
    if (!(error instanceof Refusal && error.retryAfterMs !== undefined)) throw error;
  }
}

/** Returns when a wait of the call ends at the latest, on the clock of `performance.now()`. */
function lastLookMs({ atMs }: Call): number {
  const { share, minMs, maxMs } = REPLY_MARGIN;
  const leftMs = atMs - performance.now();
  return atMs - Math.min(Math.max(leftMs * share, minMs), maxMs);
}

/** What the database's clock says, to some milliseconds: as read when the tenant was, and what has passed since. */
export function databaseNowMs({ principal }: Call): number {
  const epoch = cacheEpochOf(principal);
  return epoch === undefined ? Number.NaN : epoch.databaseTimeMs + performance.now() - epoch.askedAtMs;
}

function tenantName({ principal }: Call): string {
  return principal.role === "OPERATOR" ? "" : principal.tenant.name;
}
