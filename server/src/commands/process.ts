import { AssertionError } from "node:assert";
import { once } from "node:events";
import { CommandError, type Host } from "./host.ts";
import { printable } from "./printable.ts";

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

/**
 * A supervisor such as npm forwards a signal that the terminal has already sent to the whole process group:
 * both count as one.
 */
const SAME_REQUEST_MS = 1000;

/**
 * A command that has ended keeps the process alive for no longer, such as by the export of spans to a collector that does not answer.
 */
const LEFTOVERS_MS = 1000;

let stopRequested: Promise<void> | undefined;

/** Runs a command with this process' environment, output and signals, by `runOn`. */
export async function runCommand(
  command: (host: Host) => Promise<void>,
  args: readonly string[],
): Promise<void> {
  await runOn(
    {
      args,
      env: process.env,
      workingDir: process.cwd(),
      print: (line) => process.stdout.write(`${printable(line)}\n`),
      input: process.stdin,
      async write(text) {
        if (!process.stdout.write(text)) await once(process.stdout, "drain");
      },
      report: (line) => process.stderr.write(`${printable(line)}\n`),
      setExitCode(exitCode) {
        process.exitCode = exitCode;
      },
      logDestination: process.stdout,
      untilStopRequested,
    },
    command,
  );
  setTimeout(() => process.exit(), LEFTOVERS_MS).unref();
}

/** Runs a command. If it throws, reports the error and sets exit code 1, or that of a CommandError. */
export async function runOn(host: Host, command: (host: Host) => Promise<void>): Promise<void> {
  try {
    await command(host);
  } catch (error) {
    host.report(describeFailure(error));
    host.setExitCode(error instanceof CommandError ? error.exitCode : 1);
  }
}

function untilStopRequested(): Promise<void> {
  stopRequested ??= new Promise((resolve) => {
    let askedAtMs: number | undefined;
    const onSignal = () => {
      if (askedAtMs !== undefined && performance.now() - askedAtMs > SAME_REQUEST_MS) process.exit(1);
      askedAtMs ??= performance.now();
      resolve();
    };
    // SIGHUP: the terminal was closed.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
  });
  return stopRequested;
}
