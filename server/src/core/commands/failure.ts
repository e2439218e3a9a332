import { AssertionError } from "node:assert";

/**
 * Returns the text that a failed command prints: the error's message and its causes. A stack is included only
 * for our own defects.
 */
export function describeFailure(error: unknown): string {
  const lines: string[] = [];
  for (let link = error; link !== undefined; link = link instanceof Error ? link.cause : undefined) {
    lines.push(describe(link));
  }
  return lines.join("\n  because: ");
}

/** Errors of the language itself are defects of ours; their messages are not written for users. */
const DEFECTS = [TypeError, RangeError, ReferenceError, SyntaxError, AssertionError];

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (DEFECTS.some((defect) => error instanceof defect)) return error.stack ?? error.message;
  // A host name with several addresses fails once for each; the aggregate has no message.
  if (error instanceof AggregateError) return error.errors.map(describe).join("; ");
  return error.message;
}
