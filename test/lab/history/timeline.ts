import type { Violation } from "./check.ts";
import { type Answer, isDefinite, type Request } from "./operation.ts";
import { describeState } from "./state.ts";

/**
 * Describes a violation: the key's operations in the order of their calls, and where they contradict each
 * other.
 */
export function describeViolation(violation: Violation): string {
  const { tenant, namespace, key, invariant, message, deadEnd } = violation;
  const operations = violation.operations.toSorted((a, b) => a.invokedAtMs - b.invokedAtMs);
  const originMs = operations[0]?.invokedAtMs ?? 0;
  const places = new Map(deadEnd?.placed.map((operation, index) => [operation.id, String(index + 1)]));
  const stuck = new Set(deadEnd?.stuck.map(({ operation }) => operation.id));
  const rows = operations.map((operation) => [
    stuck.has(operation.id) ? ">>" : (places.get(operation.id) ?? ""),
    offset(operation.invokedAtMs - originMs),
    isDefinite(operation) ? offset(operation.returnedAtMs - originMs) : "?",
    operation.id,
    `${operation.client} @ ${operation.replica}`,
    describeRequest(operation.request),
    describeAnswer(operation.answer),
  ]);
  return [
    `Invariant ${invariant} of ${tenant}/${namespace} ${JSON.stringify(key)}: ${message}`,
    ...table([["order", "from ms", "to ms", "id", "client @ replica", "asked", "answered"], ...rows]),
    ...describeDeadEnd(violation, originMs),
  ].join("\n");
}

function describeDeadEnd({ deadEnd }: Violation, originMs: number): string[] {
  if (deadEnd === undefined) return [];
  const { placed, state, stuck } = deadEnd;
  const why = stuck.flatMap(({ operation, reasons }) =>
    reasons.map(({ invariant, because }) => `  ${operation.id} can't come next (${invariant}): ${because}`),
  );
  return [
    `After the ${placed.length} that have an order, the key is ${describeState(state, originMs)}.`,
    ...why,
  ];
}

function describeRequest(request: Request): string {
  const { kind, ...details } = request;
  const texts = Object.entries(details).map(([name, value]) => {
    const shown = typeof value === "object" ? value.hash : value;
    return `${name}=${typeof shown === "string" ? shown.slice(0, 12) : shown}`;
  });
  return [kind, ...texts].join(" ");
}

function describeAnswer(answer: Answer): string {
  switch (answer.kind) {
    case "unknown":
      return `? (${answer.reason})`;
    case "refused":
      return answer.reason;
    case "claimed":
      return `CLAIMED token ${answer.token}`;
    case "completed":
      return `COMPLETED ${answer.hash?.slice(0, 12) ?? "(result gone)"}`;
    case "stored":
      return answer.alreadyCompleted ? "OK, as before" : "OK";
    case "record":
      return `${answer.state} token ${answer.token} ${answer.hash?.slice(0, 12) ?? ""}`.trimEnd();
    case "malformed":
      return `malformed: ${answer.problem}`;
    case "inProgress":
      return "IN_PROGRESS";
    case "recorded":
      return "RECORDED";
    case "ambiguous":
      return "AMBIGUOUS";
    case "ok":
      return "OK";
    case "absent":
      return "nothing there";
  }
}

function offset(ms: number): string {
  return ms.toFixed(3);
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd(),
  );
}
