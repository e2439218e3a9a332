import type { Moment } from "./moment.ts";
import { illegal, type State, type Step } from "./state.ts";
import { stepAdmin, stepRestore } from "./step-admin.ts";
import { stepClaim } from "./step-claim.ts";
import { stepLookup, stepSettle } from "./step-settle.ts";

/** Refusals that do not depend on the record. */
const INDEPENDENT_OF_STATE: ReadonlySet<string> = new Set([
  "INVALID_REQUEST",
  "RESULT_TOO_LARGE",
  "CREDENTIAL_MISSING",
  "CREDENTIAL_INVALID",
  "ROLE_DENIED",
  "NAMESPACE_DENIED",
  "TENANT_SUSPENDED",
  "TENANT_MOVING",
]);

/**
 * The model: returns every state that an operation with its answer may leave, or why the answer is illegal.
 *
 * An operation of unknown outcome yields only states that it changed: leaving it out covers the rest.
 */
export function step(state: State, moment: Moment): Step[] {
  const { request, answer } = moment.operation;
  if (answer.kind === "malformed") return [illegal(11, answer.problem)];
  if (answer.kind === "refused" && isIndependentOfState(answer.reason)) return [state];
  switch (request.kind) {
    case "claim":
      return stepClaim(state, request, moment);
    case "complete":
    case "release":
    case "extendLease":
      return stepSettle(state, request, moment);
    case "lookup":
      return answer.kind === "unknown" ? [] : stepLookup(state, moment);
    case "forget":
    case "adminRelease":
    case "adminComplete":
    case "restamp":
      return stepAdmin(state, request, moment);
    case "copy":
      return [{ ...state, saved: state.record }];
    case "restore":
      return [stepRestore(state, moment)];
  }
}

function isIndependentOfState(reason: string): boolean {
  return INDEPENDENT_OF_STATE.has(reason) || reason.startsWith("QUOTA_");
}
