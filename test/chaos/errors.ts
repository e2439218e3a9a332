import type { Violation } from "../history/check.ts";
import type { History, Operation, Request } from "../history/operation.ts";

/** What an outage looks like. */
const OUTAGE: ReadonlySet<string> = new Set(["Unavailable", "DeadlineExceeded"]);
/** What a load can deserve whose calls are all well formed, and by those who may make them. */
const DESERVED: ReadonlySet<string> = new Set([
  "FINGERPRINT_MISMATCH",
  "CLAIM_SUPERSEDED",
  "ALREADY_COMPLETED",
  "ALREADY_RELEASED",
  "RECORD_NOT_FOUND",
]);

/** What only newer versions than the oldest can do: an old replica answers that it does not know the call. */
const NEWER_REQUESTS: ReadonlySet<Request["kind"]> = new Set(["forget", "adminRelease", "adminComplete"]);

/**
 * Whatever is broken, the service answers with UNAVAILABLE, DEADLINE_EXCEEDED or a refusal of its catalogue that the call
 * deserves. A connection may break, and a caller's time be up; but what comes over a connection is never nonsense.
 */
export function checkErrors({ operations }: History): Violation[] {
  return operations.flatMap((operation) => {
    const problem = problemOf(operation);
    if (problem === undefined) return [];
    const { tenant, namespace, key, id } = operation;
    return [{ tenant, namespace, key, invariant: 8, message: `${id}: ${problem}`, operations: [operation] }];
  });
}

function problemOf({ request, answer }: Operation): string | undefined {
  if (answer.kind === "refused")
    return DESERVED.has(answer.reason) ? undefined : `refused with ${answer.reason}, undeservedly`;
  if (answer.kind !== "unknown" || answer.failure === undefined) return undefined;
  const { by, code, message } = answer.failure;
  if (by === "connection" || OUTAGE.has(code)) return undefined;
  if (by === "service" && code === "Unimplemented" && NEWER_REQUESTS.has(request.kind)) return undefined;
  return by === "service"
    ? `the service failed with ${code}: ${message}`
    : `the caller could make nothing of an answer: ${code}: ${message}`;
}

/** How often callers saw which errors, by who made them, and their code and reason or what they said. */
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
