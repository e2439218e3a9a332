import type { OncewardError } from "@onceward/client";
import { CommanderError } from "commander";
import { printableJson, visible } from "./terminal.ts";

/** The exit codes of commands. Programs rely on them; README.md has the same table. */
export const EXIT = {
  ok: 0,
  /** The service refused the call, or the question was answered with no: nothing was changed. */
  refused: 1,
  /** The command is invalid, or asks a question without a terminal: nothing was changed. */
  usage: 2,
  /** The service was unreachable or did not answer in time. Before a retry, check whether the change was made. */
  unavailable: 3,
  /** The named object does not exist. */
  notFound: 4,
  /** A doctor found a warning, and no error. */
  warnings: 5,
  /** A doctor found an error. */
  errors: 6,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The status codes DEADLINE_EXCEEDED and UNAVAILABLE of gRPC. Connect has names for them; for a mistyped option it is not loaded. */
const UNANSWERED: ReadonlySet<number | undefined> = new Set([4, 14]);

/** A mistake in the command that its user can correct. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The reasons of errors that the program itself reports with `--json`. The service's reasons are in `errors.proto`. */
const OWN_REASONS: Readonly<Record<Exclude<ExitCode, 0>, string>> = {
  [EXIT.refused]: "REFUSED",
  [EXIT.usage]: "USAGE",
  [EXIT.unavailable]: "UNAVAILABLE",
  [EXIT.notFound]: "NOT_FOUND",
  [EXIT.warnings]: "WARNINGS",
  [EXIT.errors]: "ERRORS",
};

/** Ends a command with a message, which may be empty if the output says it, and an exit code. */
export class Outcome extends Error {
  override readonly name = "Outcome";
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The service refused a call, or did not answer it. */
export class ServiceFailure extends Error {
  override readonly name = "ServiceFailure";
  override readonly cause: OncewardError;
  readonly requestId: string;
  readonly hint: string;

  /**
   * @param requestId identifies the call in the server's log.
   * @param hint a sentence for people after the service's message, with a space before it; "" if there is none.
   */
  constructor(cause: OncewardError, requestId: string, hint = "") {
    super(cause.message);
    this.cause = cause;
    this.requestId = requestId;
    this.hint = hint;
  }
}

/** Returns whether an error is one of the client's, which is loaded only by commands that call the service. */
export function isOncewardError(error: unknown): error is OncewardError {
  return error instanceof Error && "reason" in error && "violations" in error;
}

/** Returns the exit code for a command's error. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof Outcome) return error.exitCode;
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof UsageError) return EXIT.usage;
  // The client refuses an option, such as an invalid address.
  if (isOncewardError(error)) return EXIT.usage;
  if (!(error instanceof ServiceFailure)) return EXIT.refused;
  const { reason, code } = error.cause;
  if (reason.endsWith("_NOT_FOUND")) return EXIT.notFound;
  // Wider than what the client retries: an answer that is not the service's own says nothing about the change either.
  const isUnanswered = UNANSWERED.has(code) || reason === "NO_ANSWER";
  return isUnanswered ? EXIT.unavailable : EXIT.refused;
}

/**
 * Returns an error as one JSON object on one line, without secrets; undefined if there is nothing to report, such as
 * after `--help`. README.md documents the fields.
 */
export function failureJson(error: unknown): string | undefined {
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT.ok || (error instanceof Outcome && error.message === "")) return undefined;
  const own = OWN_REASONS[exitCode];
  if (error instanceof ServiceFailure) {
    const { reason, message, violations, metadata, retryDelayMs } = error.cause;
    return printableJson({
      reason,
      message,
      requestId: error.requestId,
      fields: violations,
      metadata,
      retryAfterMs: retryDelayMs,
      exitCode,
    });
  }
  if (error instanceof CommanderError && error.code === "commander.help") {
    return printableJson({ reason: own, message: "A subcommand is missing; --help lists them.", exitCode });
  }
  const text = isOncewardError(error) ? describe(error) : messageOf(error);
  return printableJson({ reason: own, message: text.replace(/^error: /, ""), exitCode });
}

/** Returns one line for an error, without secrets; undefined if it is already printed. */
export function describeFailure(error: unknown): string | undefined {
  if (error instanceof CommanderError) return undefined;
  if (error instanceof Outcome && error.message === "") return undefined;
  if (error instanceof ServiceFailure) {
    const { reason } = error.cause;
    if (reason === "NO_ANSWER" && exitCodeOf(error) === EXIT.unavailable) {
      const why = visible(error.cause.message).replace(/^\[[a-z_]+\] /, "");
      return `onceward: The service does not answer: ${why}. onceward doctor checks the way to it. (request ${error.requestId})`;
    }
    return `onceward: ${visible(reason)}: ${describe(error.cause)}${error.hint} (request ${error.requestId})`;
  }
  if (isOncewardError(error)) return `onceward: ${describe(error)}`;
  return `onceward: ${messageOf(error)}`;
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : `${error}`;
}

function describe({ violations, message }: OncewardError): string {
  if (violations.length === 0) return visible(message);
  return visible(violations.map(({ field, description }) => `${field} ${description}`).join("; "));
}
