import { type History, nameOf, type Operation, type RecordName, type SeenRecord } from "./operation.ts";

/** A record, or its absence, as read from Postgres (a Lookup, or SQL) after the run. */
export interface FinalRead extends RecordName {
  readonly seen: SeenRecord | undefined;
  readonly invokedAtMs: number;
  readonly returnedAtMs: number;
}

/**
 * The second oracle. Adds reads at the end as lookups after which nothing follows: a legal order exists
 * exactly if the record read is a state in which the operations may have left the key. A record of a key that
 * no operation names does not count.
 *
 * @throws Error if a key of the history was not read.
 */
export function withFinalReads(history: History, reads: readonly FinalRead[]): History {
  const names = new Set(reads.map(nameOf));
  const unread = history.operations.find((operation) => !names.has(nameOf(operation)));
  if (unread !== undefined) throw new Error(`${nameOf(unread)} was not read at the end`);
  const lookups = reads.map(({ seen, ...read }, index): Operation => {
    const answer =
      seen === undefined ? ({ kind: "absent" } as const) : ({ kind: "record", ...seen } as const);
    return {
      ...read,
      id: `final-${index}`,
      client: "oracle",
      replica: "",
      request: { kind: "lookup" },
      answer,
    };
  });
  return { ...history, operations: [...history.operations, ...lookups] };
}
