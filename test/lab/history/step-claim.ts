import { isSurelyLate, mayBeLate } from "./late-keys.ts";
import {
  endedBy,
  holdOf,
  type Moment,
  mayHaveEnded,
  mayRun,
  retentionOf,
  type Sighting,
  sightings,
  stillRunning,
  withRecord,
} from "./moment.ts";
import type { Answer, ClaimRequest, NamespacePolicy } from "./operation.ts";
import {
  ABSENT,
  greatest,
  type HeldRecord,
  illegal,
  least,
  type Range,
  range,
  type State,
  type Step,
  sum,
} from "./state.ts";

type Claimed = Extract<Answer, { kind: "claimed" }>;
/** The answer to a claim that was granted. */
type Granted = Extract<Answer, { kind: "claimed" | "recorded" }>;

/**
 * Returns the states that a claim with this answer may leave, or why it can't have come. An unknown outcome
 * matters only if it was granted.
 */
export function stepClaim(state: State, request: ClaimRequest, moment: Moment): Step[] {
  const seen = sightings(state, moment);
  const { answer } = moment.operation;
  if (answer.kind === "unknown") {
    return seen.flatMap((sighting) => grantsFrom(sighting, request, undefined, moment));
  }
  return [
    ...replaysOfCopies(state, request, moment),
    ...seen.flatMap((it) => answerFrom(it, request, moment)),
  ];
}

/**
 * Returns the state unchanged if a copy of a forgotten result explains the answer; a copy still binds the
 * key.
 */
function replaysOfCopies(state: State, request: ClaimRequest, { operation }: Moment): State[] {
  const { answer, invokedAtMs } = operation;
  const explained = state.copies.some((copy) => {
    if (invokedAtMs > copy.untilMs) return false;
    if (mismatch(copy.fingerprint, request.fingerprint)) return isMismatch(answer);
    return answer.kind === "completed" && answer.hash === copy.hash;
  });
  return explained ? [state] : [];
}

function answerFrom(sighting: Sighting, request: ClaimRequest, moment: Moment): Step[] {
  const { answer } = moment.operation;
  const mismatched = mismatch(sighting.record?.fingerprint, request.fingerprint);
  if (isMismatch(answer)) {
    return [
      mismatched ? sighting.state : illegal(5, "refused as a mismatch, but no other fingerprint is bound"),
    ];
  }
  if (answer.kind === "refused" && answer.reason === "KEY_TOO_OLD")
    return [tooOldFrom(sighting, request, moment)];
  if (mismatched)
    return [illegal(5, `the key is bound to ${sighting.record?.fingerprint}, and it was not refused`)];
  switch (answer.kind) {
    case "claimed":
      return [
        ...ownClaimAgain(sighting, request, answer, moment),
        ...grantsFrom(sighting, request, answer, moment),
      ];
    case "recorded":
      if (completedItself(sighting.record, request)) return [sighting.state];
      return grantsFrom(sighting, request, answer, moment);
    case "inProgress":
      return [inProgressFrom(sighting, request, moment)];
    case "completed":
      return [completedFrom(sighting, request, answer.hash, moment)];
    case "ambiguous":
      return [ambiguousFrom(sighting, request, moment)];
    default:
      return [illegal(8, `a claim can't be answered ${answer.kind}`)];
  }
}

/**
 * Returns the state if the answer is the caller's own running claim: same claim id, unfinished, lease not
 * expired.
 */
function ownClaimAgain(
  { state, record }: Sighting,
  request: ClaimRequest,
  answer: Claimed,
  moment: Moment,
): State[] {
  if (record === undefined || !isOwn(record, request) || !mayRun(moment, record.leaseEnds)) return [];
  if (answer.attempt !== undefined && answer.attempt !== record.attempt) return [];
  const running = withRecord(state, record, { leaseEnds: stillRunning(moment, record.leaseEnds) });
  if (running.isTokenKnown) return answer.token === running.token ? [running] : [];
  return answer.token > running.token ? [{ ...running, token: answer.token, isTokenKnown: true }] : [];
}

/** Returns the states after a new grant; without an answer that has it, its token is unknown. */
function grantsFrom(
  sighting: Sighting,
  request: ClaimRequest,
  answer: Granted | undefined,
  moment: Moment,
): Step[] {
  const { state, record } = sighting;
  if (mismatch(record?.fingerprint, request.fingerprint)) return [];
  const obstacle = record && obstacleTo(record, request, moment);
  if (obstacle !== undefined) return answer === undefined ? [] : [illegal(1, obstacle)];
  const newLife = record === undefined && obstacleToNewLife(state, request, moment);
  if (newLife) return answer === undefined ? [] : [illegal(20, newLife)];
  const attempt = (record?.attempt ?? 0) + 1;
  const isTokenKnown = answer?.kind === "claimed";
  if (isTokenKnown) {
    const highest = Math.max(state.token, state.record?.givenBack ?? 0);
    if (answer.token <= highest) return [illegal(2, `token ${answer.token} does not exceed ${highest}`)];
    if (answer.attempt !== undefined && answer.attempt !== attempt) {
      return [illegal(1, `it is attempt ${answer.attempt} where attempt ${attempt} is due`)];
    }
  }
  return [
    {
      token: isTokenKnown ? answer.token : state.token,
      isTokenKnown,
      record: claimedRecord(sighting, request, attempt, moment),
      copies: state.copies,
      saved: state.saved,
    },
  ];
}

/** Returns why a record can't have been taken over; undefined if it can. */
function obstacleTo(record: HeldRecord, request: ClaimRequest, moment: Moment): string | undefined {
  switch (record.phase) {
    case "released":
      return undefined;
    case "completed":
      return "granted although the key is completed";
    case "held":
      if (!mayHaveEnded(moment, record.leaseEnds)) return "granted while another claim's lease runs";
      if (!mayRun(moment, holdOf(record)) && !request.acceptAmbiguous) {
        return "granted although policy holds an ambiguous record";
      }
      return undefined;
  }
}

/** Returns why a key can't begin a life, where late keys are refused; undefined if it can. */
function obstacleToNewLife(
  state: State,
  { keyCreatedAtMs }: ClaimRequest,
  moment: Moment,
): string | undefined {
  if (!moment.book.policy.refusesLateKeys) return undefined;
  if (keyCreatedAtMs === undefined) return "granted although the key's time is unknown";
  if (isSurelyLate(keyCreatedAtMs, moment)) return "granted although the key is too old";
  return state.token > 0 || !state.isTokenKnown ? "a second life of the key" : undefined;
}

/** Returns the record after a new grant: held, or completed by the claim itself. */
function claimedRecord(
  { state, record: before }: Sighting,
  request: ClaimRequest,
  attempt: number,
  { operation, clock, book }: Moment,
): HeldRecord {
  const { completesWith } = request;
  const leaseMs = completesWith === undefined ? (request.leaseMs ?? book.policy.defaultLeaseMs) : 0;
  const lease = range(leaseMs, leaseMs);
  const retentions = book.retentionsFor(operation);
  const asked = request.retentionMs ?? Number.POSITIVE_INFINITY;
  const keyRetention = least(retentions.key, range(asked, asked));
  const isUnknown = before?.phase === "held" && !before.isPending;
  const ends = sum(clock, greatest(keyRetention, lease));
  const keyEnds = isUnknown ? greatest(before.keyEnds, ends) : ends;
  const { token, isTokenKnown } = state;
  // Of what that claim had taken over, it only matters that it did, and is held.
  const unknown = before?.unknown && ABSENT;
  return {
    phase: completesWith === undefined ? "held" : "completed",
    fingerprint: before?.fingerprint ?? request.fingerprint,
    claimId: request.claimId ?? "",
    attempt,
    leaseMs,
    leaseEnds: sum(clock, lease),
    heldFrom: before?.heldFrom ?? heldFrom(clock, book.policy),
    isPending: request.marksBegin === true && !isUnknown,
    unknown: isUnknown ? { ...ABSENT, token, isTokenKnown, record: { ...before, unknown } } : undefined,
    givenBack: 0,
    acceptsAmbiguous: request.acceptAmbiguous === true,
    keyRetention,
    resultRetention: completesWith === undefined ? least(retentions.result, keyRetention) : keyRetention,
    failureRetention: completesWith === undefined ? least(retentions.failure, keyRetention) : keyRetention,
    stampedAt: clock,
    keyEnds,
    hash: completesWith ?? "",
    isFailure: false,
    resultEnds: completesWith === undefined ? range(0, 0) : keyEnds,
  };
}

function heldFrom(clock: Range, { onLeaseExpiry, reclaimWithinMs }: NamespacePolicy): Range {
  if (onLeaseExpiry === "HOLD") return range(Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY);
  const withinMs = reclaimWithinMs ?? Number.POSITIVE_INFINITY;
  return sum(clock, range(withinMs, withinMs));
}

function tooOldFrom({ state, record }: Sighting, { keyCreatedAtMs }: ClaimRequest, moment: Moment): Step {
  if (!moment.book.policy.refusesLateKeys || keyCreatedAtMs === undefined) {
    return illegal(8, "refused as too old where late keys are granted");
  }
  if (record !== undefined) return illegal(3, "refused as too old although the record is there");
  return mayBeLate(keyCreatedAtMs, moment)
    ? state
    : illegal(8, "refused as too old although the key is young");
}

function inProgressFrom({ state, record }: Sighting, request: ClaimRequest, moment: Moment): Step {
  if (record === undefined) return illegal(9, "answered IN_PROGRESS although there is no record");
  if (record.phase !== "held") return illegal(4, `answered IN_PROGRESS although the key is ${record.phase}`);
  if (isOwn(record, request)) return illegal(1, "answered IN_PROGRESS to the claim's own claim id");
  if (!mayRun(moment, record.leaseEnds)) return illegal(9, "answered IN_PROGRESS after the lease had ended");
  return withRecord(state, record, { leaseEnds: stillRunning(moment, record.leaseEnds) });
}

function completedFrom(
  { state, record }: Sighting,
  request: ClaimRequest,
  hash: string | undefined,
  moment: Moment,
): Step {
  if (completedItself(record, request))
    return illegal(3, "answered COMPLETED to the claim that completed the key");
  if (record?.phase !== "completed") {
    return illegal(3, `a result is replayed although the key is ${record?.phase ?? "absent"}`);
  }
  if (hash === undefined) {
    const retention = retentionOf(record, moment.clock, moment);
    if (!mayHaveEnded(retention, record.resultEnds))
      return illegal(3, "the result is gone before its retention ended");
    return withRecord(state, record, { resultEnds: endedBy(retention, record.resultEnds) });
  }
  if (hash !== record.hash) return illegal(3, `${hash} is replayed, but ${record.hash} was stored`);
  if (!mayRun(moment, record.resultEnds))
    return illegal(3, "the result is replayed after its retention ended");
  return withRecord(state, record, { resultEnds: stillRunning(moment, record.resultEnds) });
}

function ambiguousFrom({ state, record }: Sighting, request: ClaimRequest, moment: Moment): Step {
  if (record?.phase !== "held")
    return illegal(9, `answered AMBIGUOUS although the key is ${record?.phase ?? "absent"}`);
  if (!mayHaveEnded({ clock: moment.reclaimClock }, record.heldFrom))
    return illegal(9, "answered AMBIGUOUS although policy reclaims");
  if (request.acceptAmbiguous) return illegal(9, "answered AMBIGUOUS to a claim that accepts it");
  if (!mayHaveEnded(moment, record.leaseEnds)) return illegal(1, "answered AMBIGUOUS while the lease runs");
  return withRecord(state, record, { leaseEnds: endedBy(moment, record.leaseEnds) });
}

function isOwn(record: HeldRecord, { claimId = "" }: ClaimRequest): boolean {
  return record.phase === "held" && claimId !== "" && claimId === record.claimId;
}

/** Whether a record was completed by this claim itself, which its claim id names. */
function completedItself(
  record: HeldRecord | undefined,
  { claimId = "", completesWith }: ClaimRequest,
): boolean {
  return (
    record?.phase === "completed" &&
    claimId !== "" &&
    claimId === record.claimId &&
    completesWith === record.hash
  );
}

function isMismatch(answer: Answer): boolean {
  return answer.kind === "refused" && answer.reason === "FINGERPRINT_MISMATCH";
}

/** Returns whether two fingerprints differ; a missing one matches. */
function mismatch(bound: string | undefined, brought: string | undefined): boolean {
  return bound !== undefined && brought !== undefined && bound !== brought;
}
