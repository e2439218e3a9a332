import {
  endedBy,
  holdOf,
  type Moment,
  matchToken,
  mayHaveEnded,
  mayRun,
  retentionOf,
  type Sighting,
  sightings,
  stillRunning,
  withRecord,
} from "./moment.ts";
import type { Answer, ResultName, SettlingRequest } from "./operation.ts";
import { greatest, type HeldRecord, illegal, least, range, type State, type Step, sum } from "./state.ts";

/**
 * Returns the states that a Complete, a Release or an ExtendLease with this answer may leave, or why it can't
 * have come.
 */
export function stepSettle(state: State, request: SettlingRequest, moment: Moment): Step[] {
  const { answer } = moment.operation;
  return sightings(state, moment).flatMap((sighting) => {
    if (answer.kind === "unknown") return effectOf(sighting, request, moment);
    return answerFrom(sighting, request, answer, moment);
  });
}

/** Returns the effect on the unfinished claim that the token names; empty if there is no such claim. */
function effectOf({ state, record }: Sighting, request: SettlingRequest, moment: Moment): State[] {
  const { own } = matchToken(state, request.token);
  if (own === undefined || record?.phase !== "held") return [];
  switch (request.kind) {
    case "complete":
      return [completed(own, record, request.result, request.retentionMs, moment)];
    case "release":
      if (!leavesOpen(record, request)) return [{ ...own, record: { ...record, phase: "released" } }];
      return [record.givenBack === 0 ? givenBack(own, record) : own];
    case "extendLease": {
      const leaseMs = request.leaseMs ?? record.leaseMs;
      const extended = sum(moment.clock, range(leaseMs, leaseMs));
      return [
        withRecord(own, record, {
          leaseEnds: greatest(record.leaseEnds, extended),
          keyEnds: greatest(record.keyEnds, extended),
          isPending: record.isPending && !request.begin,
        }),
      ];
    }
  }
}

/** Whether a release says nothing about the claim that was taken over. What was given back stays so. */
function leavesOpen(
  { unknown, heldFrom, acceptsAmbiguous, givenBack }: HeldRecord,
  { giveBack }: Extract<SettlingRequest, { kind: "release" }>,
): boolean {
  const isLimited = heldFrom.to < Number.POSITIVE_INFINITY;
  return unknown !== undefined && (giveBack || (isLimited && (!acceptsAmbiguous || givenBack !== 0)));
}

/** Returns the record as it was before the newest claim. What that claim bound and stamped stays. */
function givenBack(state: State, record: HeldRecord): State {
  const { token, isTokenKnown, record: before } = record.unknown ?? state;
  const { attempt, leaseEnds, stampedAt, unknown } = before ?? record;
  const restored = { attempt, leaseEnds, stampedAt, unknown, claimId: "", givenBack: state.token };
  return { ...state, token, isTokenKnown, record: { ...record, ...restored } };
}

/** Returns the record with its result; retention counts from this moment. */
export function completed(
  state: State,
  record: HeldRecord,
  { hash, isFailure = false }: ResultName,
  retentionMs: number | undefined,
  { clock }: Moment,
): State {
  const keyRetention = retentionMs === undefined ? record.keyRetention : range(retentionMs, retentionMs);
  const resultRetention = least(keyRetention, isFailure ? record.failureRetention : record.resultRetention);
  return {
    ...state,
    record: {
      ...record,
      phase: "completed",
      hash,
      isFailure,
      stampedAt: clock,
      keyRetention,
      keyEnds: sum(clock, keyRetention),
      resultEnds: sum(clock, resultRetention),
    },
  };
}

function answerFrom(sighting: Sighting, request: SettlingRequest, answer: Answer, moment: Moment): Step[] {
  const { state, record } = sighting;
  if (answer.kind === "refused") return refusalFrom(sighting, request, answer.reason);
  if (answer.kind !== (request.kind === "complete" ? "stored" : "ok")) {
    return [illegal(8, `a ${request.kind} can't be answered ${answer.kind}`)];
  }
  if (record === undefined) return [illegal(4, "accepted although there is no record")];
  const { own } = matchToken(state, request.token);
  const isRepeat = request.kind === "release" && (request.giveBack || !record.acceptsAmbiguous);
  if (isRepeat && request.token === record.givenBack) return [state];
  if (own === undefined) return [illegal(4, `accepted from token ${request.token}, which was superseded`)];
  if (record.phase === "held") {
    if (answer.kind === "stored" && answer.alreadyCompleted) {
      return [illegal(3, "called a repeat although the claim was not completed")];
    }
    return effectOf(sighting, request, moment);
  }
  // A repeat of what settled it.
  if (request.kind === "release" && record.phase === "released") return [own];
  if (request.kind !== "complete" || record.phase !== "completed") {
    return [illegal(4, `accepted although the claim is ${record.phase}`)];
  }
  if (request.result.hash !== record.hash) return [illegal(4, "accepted although another result is stored")];
  if (answer.kind === "stored" && !answer.alreadyCompleted) {
    return [illegal(4, "stored a second time, not called a repeat")];
  }
  return [own];
}

function refusalFrom({ state, record }: Sighting, request: SettlingRequest, reason: string): Step[] {
  const { own, other } = matchToken(state, request.token);
  switch (reason) {
    case "RECORD_NOT_FOUND":
      return [record === undefined ? state : illegal(3, "not found although the record is there")];
    case "CLAIM_SUPERSEDED":
      if (record === undefined) return [illegal(4, "superseded although there is no record")];
      return [other ? state : illegal(4, "superseded although the token is the newest claim's")];
    case "ALREADY_COMPLETED":
      if (record === undefined || own === undefined || record.phase !== "completed") {
        return [illegal(4, "refused as completed, which it is not")];
      }
      if (request.kind === "complete" && request.result.hash === record.hash) {
        return [illegal(4, "refused as completed otherwise, but it is the stored result")];
      }
      return [own];
    case "ALREADY_RELEASED":
      if (record?.phase === "released" && own !== undefined && request.kind !== "release") return [own];
      return [illegal(4, "refused as released, which it is not")];
    default:
      return [illegal(8, `refused with ${reason}, which no ${request.kind} is`)];
  }
}

/** Returns the states that a Lookup with this answer may leave, or why it can't have come. */
export function stepLookup(state: State, moment: Moment): Step[] {
  return sightings(state, moment).flatMap((sighting) => lookupFrom(sighting, moment));
}

function lookupFrom({ state, record }: Sighting, moment: Moment): Step[] {
  const { answer } = moment.operation;
  if (answer.kind === "absent")
    return [record === undefined ? state : illegal(3, "absent although its retention runs")];
  if (answer.kind !== "record") return [illegal(8, `a lookup can't be answered ${answer.kind}`)];
  if (record === undefined) return [illegal(1, "a record is shown where none can be")];
  const { own } = matchToken(state, answer.token);
  if (own === undefined) return [illegal(2, `token ${answer.token} is shown, which is not the newest`)];
  if (answer.fingerprint !== record.fingerprint)
    return [illegal(5, "another fingerprint is shown than was bound")];
  const phase = answer.state === "ambiguous" || answer.state === "inProgress" ? "held" : answer.state;
  if (phase !== record.phase) return [illegal(4, `shown as ${answer.state} although it is ${record.phase}`)];
  if (phase === "completed") return [resultShown(own, record, answer.hash, moment)];
  if (answer.state === "ambiguous") {
    if (!mayHaveEnded({ clock: moment.reclaimClock }, record.heldFrom))
      return [illegal(9, "ambiguous although policy reclaims")];
    if (!mayHaveEnded(moment, record.leaseEnds)) return [illegal(1, "ambiguous while the lease runs")];
    return [withRecord(own, record, { leaseEnds: endedBy(moment, record.leaseEnds) })];
  }
  // A claim whose expired lease is not held is shown as in progress until another claim takes over.
  if (answer.state === "inProgress" && !mayRun(moment, holdOf(record))) {
    if (!mayRun(moment, record.leaseEnds)) return [illegal(9, "in progress after the lease had ended")];
    return [withRecord(own, record, { leaseEnds: stillRunning(moment, record.leaseEnds) })];
  }
  return [own];
}

function resultShown(state: State, record: HeldRecord, hash: string | undefined, moment: Moment): Step {
  if (hash === undefined) {
    const retention = retentionOf(record, moment.clock, moment);
    if (!mayHaveEnded(retention, record.resultEnds))
      return illegal(3, "the result is gone before its retention ended");
    return withRecord(state, record, { resultEnds: endedBy(retention, record.resultEnds) });
  }
  if (hash !== record.hash) return illegal(3, `${hash} is shown, but ${record.hash} was stored`);
  if (!mayRun(moment, record.resultEnds)) return illegal(3, "the result is shown after its retention ended");
  return withRecord(state, record, { resultEnds: stillRunning(moment, record.resultEnds) });
}
