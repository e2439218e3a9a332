import { Code } from "@connectrpc/connect";
import { OncewardError } from "@onceward/client";
import { CommanderError } from "commander";

/** How a command ends. Programs rely on them: README.md has the same table. */
export const EXIT = {
  ok: 0,
  /** The service refused, or the answer to a question was no: nothing was changed. */
  refused: 1,
  /** The command is wrong as it stands, or needs an answer that nobody is there to give: nothing was changed. */
  usage: 2,
  /** The service could not be reached or did not answer in time: worth another try, after a look at whether a change was made. */
  unavailable: 3,
  /** There is no such thing. */
  notFound: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What whoever typed the command can put right. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Ends a command with an exit code that says what its line of text says. */
export class Outcome extends Error {
  override readonly name = "Outcome";
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What the service said, or what kept it from saying anything. */
export class ServiceFailure extends Error {
  override readonly name = "ServiceFailure";
  override readonly cause: OncewardError;
  readonly requestId: string;

  /** @param requestId under which the server's log has the call. */
  constructor(cause: OncewardError, requestId: string) {
    super(cause.message);
    this.cause = cause;
    this.requestId = requestId;
  }
}

/** The exit code of what a command threw. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof Outcome) return error.exitCode;
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof UsageError) return EXIT.usage;
  // An option that the client itself refuses, such as an address that is none.
  if (error instanceof OncewardError) return EXIT.usage;
  if (!(error instanceof ServiceFailure)) return EXIT.refused;
  const { reason, code } = error.cause;
  if (reason.endsWith("_NOT_FOUND")) return EXIT.notFound;
  const isAway = code === Code.Unavailable || code === Code.DeadlineExceeded || reason === "NO_ANSWER";
  return isAway ? EXIT.unavailable : EXIT.refused;
}

/** One line that says what to change; nothing in it is secret. Undefined where commander has said it already. */
export function describeFailure(error: unknown): string | undefined {
  if (error instanceof CommanderError) return undefined;
  if (error instanceof ServiceFailure) {
    const { reason } = error.cause;
    return `onceward: ${reason}: ${describe(error.cause)} (request ${error.requestId})`;
  }
  if (error instanceof OncewardError) return `onceward: ${describe(error)}`;
  return `onceward: ${error instanceof Error ? error.message : error}`;
}

function describe({ violations, message }: OncewardError): string {
  if (violations.length === 0) return message;
  return violations.map(({ field, description }) => `${field} ${description}`).join("; ");
}
