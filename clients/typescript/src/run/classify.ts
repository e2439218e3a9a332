import { TerminalError } from "../errors/errors.ts";
import type { RunOptions } from "./run-options.ts";

/** What is stored of an error that the function threw; undefined for one that releases the claim. */
export function terminalErrorOf(
  error: unknown,
  classifyError: RunOptions["classifyError"],
): TerminalError | undefined {
  if (error instanceof TerminalError) return error;
  if (classifyError === undefined || !isTerminal(error, classifyError)) return undefined;
  if (!(error instanceof Error)) return new TerminalError(`${error}`, undefined, { cause: error });
  const { name, message } = error;
  return new TerminalError(message, "details" in error ? error.details : undefined, { name, cause: error });
}

/** The function's error is what the caller must see, whatever becomes of judging it. */
function isTerminal(error: unknown, classifyError: NonNullable<RunOptions["classifyError"]>): boolean {
  try {
    return classifyError(error) === "terminal";
  } catch {
    return false;
  }
}
