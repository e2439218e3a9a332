import type { DestinationStream } from "pino";

/** The part of the process that commands use. Only `process.ts` accesses the real process. */
export interface Host {
  /** Arguments after the command's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDir: string;
  /** Prints one line to standard output. */
  print(line: string): void;
  /** Standard input. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Writes bytes to standard output; resolves once the reader has room for more. */
  write(text: string): Promise<void>;
  /** Prints one line to standard error, for a command whose output is data. */
  report(line: string): void;
  /** Sets the exit code for the end of a command that does not throw; 0 unless this is called. */
  setExitCode(exitCode: number): void;
  readonly logDestination: DestinationStream;
  /**
   * Resolves on the first SIGINT, SIGTERM or SIGHUP after the first call. A second signal, more than a second
   * later, ends the process at once. A command that has something to clean up calls this before anything
   * else.
   */
  untilStopRequested(): Promise<void>;
}

/**
 * An error that the user can correct. The command prints its message and its causes, and exits with code 1
 * unless another one is given.
 */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: number;

  constructor(
    message: string,
    { cause, exitCode = 1 }: { readonly cause?: unknown; readonly exitCode?: number } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
