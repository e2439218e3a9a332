import type { Moment } from "./moment.ts";
import { illegal, type State, type Step } from "./state.ts";
import { stepAdmin } from "./step-admin.ts";
import { stepClaim } from "./step-claim.ts";
import { stepLookup, stepSettle } from "./step-settle.ts";

/** Refusals that do not depend on the record. */
const WHATEVER_THE_STATE: ReadonlySet<string> = new Set([
  "INVALID_REQUEST",
  "RESULT_TOO_LARGE",
  "CREDENTIAL_MISSING",
  "CREDENTIAL_INVALID",
  "ROLE_DENIED",
  "NAMESPACE_DENIED",
  "TENANT_SUSPENDED",
]);

/**
 * The model: every state that an operation may have left, with the answer that it had, and why not where
 * there is none.
 *
 * An operation of unknown outcome yields only what it changed: that it did not happen, or changed nothing, is
 * the same as leaving it out.
 */
export function step(state: State, moment: Moment): Step[] {
  const { request, answer } = moment.operation;
  if (answer.kind === "malformed") return [illegal(11, answer.problem)];
  if (answer.kind === "refused" && isWhateverTheState(answer.reason)) return [state];
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
  }
}

function isWhateverTheState(reason: string): boolean {
  return WHATEVER_THE_STATE.has(reason) || reason.startsWith("QUOTA_");
}
