import { type Moment, sightings } from "./moment.ts";
import type { AdminRequest, RestampRequest } from "./operation.ts";
import { MAX_STALENESS_MS } from "./policies.ts";
import {
  type Copy,
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
import { completed } from "./step-settle.ts";

/** Returns the states that an administrator's call with this answer may leave, or why it can't have come. */
export function stepAdmin(state: State, request: AdminRequest, moment: Moment): Step[] {
  const { answer } = moment.operation;
  return sightings(state, moment).flatMap((sighting): Step[] => {
    const { record } = sighting;
    if (answer.kind === "refused") {
      if (answer.reason !== "RECORD_NOT_FOUND" || record === undefined) return [sighting.state];
      return [illegal(3, "not found although the record is there")];
    }
    if (record === undefined) return answer.kind === "unknown" ? [] : [sighting.state];
    return [effectOf(sighting.state, record, request, moment)];
  });
}

function effectOf(state: State, record: HeldRecord, request: AdminRequest, moment: Moment): Step {
  switch (request.kind) {
    case "forget":
      return {
        ...{ ...state, token: Math.max(state.token, record.givenBack), record: undefined },
        copies: withCopy(state, record, moment),
      };
    case "adminRelease":
      if (record.phase === "completed") return illegal(4, "released although the key is completed");
      return { ...state, record: { ...record, phase: "released" } };
    case "adminComplete":
      if (record.phase !== "completed") return completed(state, record, request.result, undefined, moment);
      return record.hash === request.result.hash
        ? state
        : illegal(4, "completed although another result is stored");
    case "restamp":
      return restamped(state, record, request, moment);
  }
}

/**
 * Applies new retentions, which still count from the claim or the completion. A record with a shorter
 * retention may keep it.
 */
function restamped(
  state: State,
  record: HeldRecord,
  { keyRetentionMs, resultRetentionMs, failureRetentionMs }: RestampRequest,
  moment: Moment,
): State {
  const upTo = (before: Range, ms: number) => range(Math.min(before.from, ms), ms);
  const keyRetention = upTo(record.keyRetention, keyRetentionMs);
  const resultRetention = upTo(record.resultRetention, resultRetentionMs);
  const failureRetention = upTo(record.failureRetention, failureRetentionMs);
  const isCompleted = record.phase === "completed";
  const keyEnds = sum(record.stampedAt, keyRetention);
  // A record without a lease was completed by its claim: its empty result lasts as long as its key.
  const own = record.leaseMs === 0 ? keyRetention : record.isFailure ? failureRetention : resultRetention;
  const ofResult = least(keyRetention, own);
  return {
    ...state,
    copies: isCompleted ? withCopy(state, record, moment) : state.copies,
    record: {
      ...record,
      keyRetention,
      resultRetention,
      failureRetention,
      keyEnds: isCompleted ? keyEnds : greatest(keyEnds, record.leaseEnds),
      resultEnds: isCompleted ? sum(record.stampedAt, ofResult) : record.resultEnds,
    },
  };
}

/** The copy of the database takes its place; tokens still rise, and caches may hold what was lost. */
export function stepRestore(state: State, moment: Moment): State {
  const { record, saved } = state;
  const copies = record === undefined ? state.copies : withCopy(state, record, moment);
  return { ...state, record: saved, saved: undefined, copies };
}

/** The published bound: forgetting is effective everywhere within 10 s of its return. */
function withCopy(state: State, record: HeldRecord, { operation }: Moment): readonly Copy[] {
  if (record.phase !== "completed") return state.copies;
  const untilMs = operation.returnedAtMs + MAX_STALENESS_MS;
  return [...state.copies, { fingerprint: record.fingerprint, hash: record.hash, untilMs }];
}
