import { once } from "node:events";
import { describeFailure } from "./failure.ts";
import { CommandError, type Host } from "./host.ts";

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

/**
 * Runs a command with this process' environment, output and signals. If the command throws, prints the error
 * to standard error and sets exit code 1, or that of a CommandError.
 */
export async function runCommand(
  command: (host: Host) => Promise<void>,
  args: readonly string[],
): Promise<void> {
  try {
    await command({
      args,
      env: process.env,
      workingDir: process.cwd(),
      print: (line) => process.stdout.write(`${line}\n`),
      input: process.stdin,
      async write(text) {
        if (!process.stdout.write(text)) await once(process.stdout, "drain");
      },
      tell: (line) => process.stderr.write(`${line}\n`),
      endWith(exitCode) {
        process.exitCode = exitCode;
      },
      logDestination: process.stdout,
      untilStopRequested,
    });
  } catch (error) {
    process.stderr.write(`${describeFailure(error)}\n`);
    process.exitCode = error instanceof CommandError ? error.exitCode : 1;
  }
  setTimeout(() => process.exit(), LEFTOVERS_MS).unref();
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
