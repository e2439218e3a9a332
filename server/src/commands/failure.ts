import { AssertionError } from "node:assert";

/**
 * What a command that failed tells its user: what went wrong, and below it what caused that. A stack helps only where
 * the mistake is ours.
 */
export function describeFailure(error: unknown): string {
  const lines: string[] = [];
  for (let link = error; link !== undefined; link = link instanceof Error ? link.cause : undefined) {
    lines.push(describe(link));
  }
  return lines.join("\n  because: ");
}

/** What the language itself throws was worded for nobody: a defect of ours. */
const DEFECTS = [TypeError, RangeError, ReferenceError, SyntaxError, AssertionError];

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (DEFECTS.some((defect) => error instanceof defect)) return error.stack ?? error.message;
  // A name with several addresses fails once for each, and says nothing itself.
  if (error instanceof AggregateError) return error.errors.map(describe).join("; ");
  return error.message;
}
