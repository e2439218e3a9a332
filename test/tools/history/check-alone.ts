import type { Violation } from "./check.ts";
import type { Operation } from "./operation.ts";

/** A waiting call that is answered IN_PROGRESS earlier than this before its wait ends woke without reason. */
const WAIT_TOLERANCE_MS = 20;

/** Returns the violations that a single operation of a key shows without the others. */
export function checkAlone(operations: readonly Operation[]): Violation[] {
  return operations.flatMap((operation) => {
    const problems = [...foreignMarks(operation), ...wokenEarly(operation)];
    const { tenant, namespace, key } = operation;
    return problems.map(({ invariant, message }) => ({
      tenant,
      namespace,
      key,
      invariant,
      message: `${operation.id}: ${message}`,
      operations: [operation],
    }));
  });
}

type Problem = Pick<Violation, "invariant" | "message">;

function foreignMarks({ tenant, marks = [] }: Operation): Problem[] {
  const foreign = marks.filter((mark) => mark !== tenant);
  return foreign.map((mark) => ({
    invariant: 6,
    message: `${tenant} was shown data with the mark of ${mark}`,
  }));
}

function wokenEarly({ request, answer, invokedAtMs, returnedAtMs }: Operation): Problem[] {
  if (request.kind !== "claim" || request.waitMs === undefined || answer.kind !== "inProgress") return [];
  const waitedMs = returnedAtMs - invokedAtMs;
  if (waitedMs >= request.waitMs - WAIT_TOLERANCE_MS) return [];
  return [
    {
      invariant: 13,
      message: `woken after ${waitedMs.toFixed(0)} of ${request.waitMs} ms, with IN_PROGRESS`,
    },
  ];
}
