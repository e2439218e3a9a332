import type { Violation } from "../history/check.ts";
import type { History, Operation, Request, TenantMove } from "../history/operation.ts";

/** Codes of an outage. */
const OUTAGE: ReadonlySet<string> = new Set(["Unavailable", "DeadlineExceeded"]);
/** Refusals that a well-formed and authorised load can deserve. */
const DESERVED: ReadonlySet<string> = new Set([
  "FINGERPRINT_MISMATCH",
  "CLAIM_SUPERSEDED",
  "ALREADY_COMPLETED",
  "ALREADY_RELEASED",
  "RECORD_NOT_FOUND",
  // Only where late keys are refused: the checker judges whether the key was late.
  "KEY_TOO_OLD",
]);

/** The same of a tenant that moves; in the home that it has left, it is deleted, and its API keys are revoked. */
const DESERVED_IN_A_MOVE: ReadonlySet<string> = new Set([
  "TENANT_MOVING",
  "TENANT_SUSPENDED",
  "CREDENTIAL_INVALID",
]);

/** Calls that the oldest version does not have: it answers UNIMPLEMENTED. */
const NEWER_REQUESTS: ReadonlySet<Request["kind"]> = new Set(["forget", "adminRelease", "adminComplete"]);

/**
 * Returns the errors that the contract does not allow. Under any fault the service answers with UNAVAILABLE,
 * DEADLINE_EXCEEDED or a refusal that the call deserves. A connection may break and a caller's time may run
 * out, but every reply can be parsed.
 */
export function checkErrors({ operations, tenantMoves = [] }: History): Violation[] {
  return operations.flatMap((operation) => {
    const isMoving = tenantMoves.some((move) => isDuring(operation, move));
    const problem = problemOf(operation, isMoving);
    if (problem === undefined) return [];
    const { tenant, namespace, key, id } = operation;
    return [{ tenant, namespace, key, invariant: 8, message: `${id}: ${problem}`, operations: [operation] }];
  });
}

function isDuring({ tenant, invokedAtMs, returnedAtMs }: Operation, move: TenantMove): boolean {
  return tenant === move.tenant && invokedAtMs <= move.toMs && returnedAtMs >= move.fromMs;
}

function problemOf({ request, answer }: Operation, isMoving: boolean): string | undefined {
  if (answer.kind === "refused")
    return DESERVED.has(answer.reason) || (isMoving && DESERVED_IN_A_MOVE.has(answer.reason))
      ? undefined
      : `refused with ${answer.reason}, which the call does not deserve`;
  if (answer.kind !== "unknown" || answer.failure === undefined) return undefined;
  const { by, code, message } = answer.failure;
  if (by === "connection" || OUTAGE.has(code)) return undefined;
  if (by === "service" && code === "Unimplemented" && NEWER_REQUESTS.has(request.kind)) return undefined;
  return by === "service"
    ? `the service failed with ${code}: ${message}`
    : `the caller could not parse an answer: ${code}: ${message}`;
}

/** Counts errors by origin and by code and reason, or by message if there is no reason. */
export function countErrors(operations: readonly Operation[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { answer } of operations) {
    if (answer.kind !== "unknown" || answer.failure === undefined) continue;
    const { by, code, message } = answer.failure;
    const name = `${by}: ${answer.reason === "NO_ANSWER" ? message : `${code} ${answer.reason}`}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
