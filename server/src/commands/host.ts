import type { DestinationStream } from "pino";

/** What a command sees of its process; `process.ts` is the only file that touches the real one. */
export interface Host {
  /** After the command's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDir: string;
  /** One line to standard output. */
  print(line: string): void;
  readonly logDestination: DestinationStream;
  /**
   * Resolves on the first SIGINT, SIGTERM or SIGHUP after the first call; one that comes more than a second later ends the process
   * at once. A command that has something to clean up calls it first thing.
   */
  untilStopRequested(): Promise<void>;
}

/** What its user can put right: a command ends with this message, what caused it, and exit code 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
