import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { type Answer, isDefinite, type Operation } from "./operation.ts";

/** Everything of an operation that is known when it is invoked. */
export type Invocation = Omit<Operation, "answer" | "returnedAtMs" | "marks">;

/** What came of it. */
export interface Return {
  readonly id: string;
  readonly answer: Answer;
  readonly returnedAtMs: number;
  readonly marks: readonly string[];
}

/** A file that one client process writes what it does to, a JSON line at a time. */
export interface Journal {
  /** Written before the call is made, so that a process that is killed meanwhile leaves a trace of what it began. */
  invoked(invocations: readonly Invocation[]): void;
  returned(returns: readonly Return[]): void;
  close(): void;
}

type Line = { readonly invoked: Invocation } | { readonly returned: Return };

/** @throws Error if the file is there already: a journal is of one process. */
export function openJournal(path: string): Journal {
  const file = openSync(path, "wx");
  // Not buffered: what was handed to the kernel survives the process.
  const write = (lines: readonly Line[]) => {
    writeSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  };
  return {
    invoked: (invocations) => write(invocations.map((invoked) => ({ invoked }))),
    returned: (returns) => write(returns.map((returned) => ({ returned }))),
    close: () => closeSync(file),
  };
}

/**
 * The operations of all these journals. One that was begun and never returned has an unknown outcome. Nothing is assumed of
 * the order of lines in different files: all processes of a machine share a clock.
 *
 * @throws Error for a line that is none, but the last of a process that was killed while it wrote; and for an id that two
 * operations have.
 */
export function readJournals(paths: readonly string[]): Operation[] {
  const invocations = new Map<string, Invocation>();
  const returns = new Map<string, Return>();
  for (const line of paths.flatMap(readLines)) {
    if ("returned" in line) returns.set(line.returned.id, line.returned);
    else if (invocations.has(line.invoked.id))
      throw new Error(`two operations have the id ${line.invoked.id}`);
    else invocations.set(line.invoked.id, line.invoked);
  }
  return [...invocations.values()].map((invocation) => withReturn(invocation, returns.get(invocation.id)));
}

function withReturn(invocation: Invocation, returned: Return | undefined): Operation {
  const answer: Answer = returned?.answer ?? { kind: "unknown", reason: "the client died" };
  const { marks = [], returnedAtMs = Number.POSITIVE_INFINITY } = returned ?? {};
  const operation = { ...invocation, answer, marks, returnedAtMs };
  return isDefinite(operation) ? operation : { ...operation, returnedAtMs: Number.POSITIVE_INFINITY };
}

function readLines(path: string): Line[] {
  const lines = readFileSync(path, "utf8").split("\n");
  // What follows the last line's end is nothing, or a line that was cut off.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line);
}
