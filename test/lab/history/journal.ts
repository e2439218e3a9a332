import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { type Answer, isDefinite, type Operation } from "./operation.ts";

/** The part of an operation that is known when it is invoked. */
export type Invocation = Omit<Operation, "answer" | "returnedAtMs" | "marks">;

/** The outcome of an operation. */
export interface Return {
  readonly id: string;
  readonly answer: Answer;
  readonly returnedAtMs: number;
  readonly marks: readonly string[];
}

/** A file to which one client process writes its operations, as JSON lines. */
export interface Journal {
  /** Written before the call, so that a process that is killed during it leaves a trace. */
  invoked(invocations: readonly Invocation[]): void;
  returned(returns: readonly Return[]): void;
  close(): void;
}

type Line = { readonly invoked: Invocation } | { readonly returned: Return };

/** Creates a journal. @throws Error if the file exists: a journal belongs to one process. */
export function openJournal(path: string): Journal {
  const file = openSync(path, "wx");
  // Not buffered: bytes in the kernel survive the process.
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
 * Reads the operations of all these journals. An operation that never returned has an unknown outcome. Lines
 * of different files need no order: all processes of a machine share a clock.
 *
 * @throws Error for a malformed line, except the last of a process that was killed while it wrote; and for an
 *   id that two operations have.
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
  // After the last line end comes nothing, or a line that was cut off.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line);
}
