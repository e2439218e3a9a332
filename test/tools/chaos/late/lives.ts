import { type History, nameOf, type Operation } from "../../history/operation.ts";
import { REFUSING, RETENTION_MS, RUNNING } from "./keys.ts";

/** What came of the late repeats of a namespace's keys. */
export interface LateRepeats {
  readonly keys: number;
  /** Claims of keys that were older than their retention and had been claimed before. */
  readonly repeats: number;
  /** The same by their answers. */
  readonly answers: Readonly<Record<string, number>>;
  /** Lives of keys beyond the first of each. */
  readonly secondLives: number;
}

/** Counts the late repeats of both namespaces. */
export function countLateRepeats({ operations }: History): Readonly<Record<string, LateRepeats>> {
  const byNamespace = Map.groupBy(operations, ({ namespace }) => namespace);
  return Object.fromEntries(
    [REFUSING, RUNNING].map((namespace) => [namespace, countIn(byNamespace.get(namespace) ?? [])]),
  );
}

function countIn(operations: readonly Operation[]): LateRepeats {
  const answers: Record<string, number> = {};
  let repeats = 0;
  let secondLives = 0;
  const keys = Map.groupBy(operations, nameOf);
  for (const own of keys.values()) {
    for (const repeat of lateRepeatsOf(own)) {
      repeats++;
      const { kind } = repeat.answer;
      answers[kind] = (answers[kind] ?? 0) + 1;
    }
    secondLives += Math.max(0, livesOf(own) - 1);
  }
  return { keys: keys.size, repeats, answers, secondLives };
}

/** Claims that were made when the key was older than its retention, but not the first claim of a key. */
function lateRepeatsOf(operations: readonly Operation[]): Operation[] {
  const claims = operations
    .filter(({ request }) => request.kind === "claim")
    .toSorted((a, b) => a.invokedAtMs - b.invokedAtMs);
  return claims.slice(1).filter(({ request, invokedAtMs }) => {
    const createdAtMs = request.kind === "claim" ? request.keyCreatedAtMs : undefined;
    return createdAtMs !== undefined && invokedAtMs >= createdAtMs + RETENTION_MS;
  });
}

/** A life begins with attempt 1; a claim that is repeated gets the same token. */
function livesOf(operations: readonly Operation[]): number {
  const tokens = operations.flatMap(({ answer }) =>
    answer.kind === "claimed" && answer.attempt === 1 ? [answer.token] : [],
  );
  return new Set(tokens).size;
}
