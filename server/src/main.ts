#!/usr/bin/env node
import { afterRestore } from "./commands/after-restore.ts";
import { operatorKey, tenantKey } from "./commands/api-keys.ts";
import { dev } from "./commands/dev.ts";
import { describeFailure } from "./commands/failure.ts";
import type { Host } from "./commands/host.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { serve } from "./commands/serve.ts";

const COMMANDS: ReadonlyMap<string, (host: Host) => Promise<void>> = new Map([
  ["serve", serve],
  ["dev", dev],
  ["migrate", migrateCommand],
  ["after-restore", afterRestore],
  ["operator-key", operatorKey],
  ["tenant-key", tenantKey],
]);

const USAGE = `onceward-server COMMAND

  serve                                     run a replica
  dev                                       run a replica with a database and a demo tenant of its own
  migrate [--check]                         bring the schema up to date, or say whether it is
  after-restore [--force] [--above TOKEN]   after the database was restored or promoted: let nothing be given out twice
  operator-key                              make an operator's API key, and print it
  tenant-key --tenant NAME [--role admin]   make a tenant's API key, and the tenant if need be, and print it

Configured by environment variables: see server/README.md.`;

/** A supervisor such as npm forwards the signal that a terminal has sent to the whole process group: both ask for one stop. */
const SAME_REQUEST_MS = 1000;

let stopRequested: Promise<void> | undefined;

const [, , name = "", ...args] = process.argv;
const command = COMMANDS.get(name);
if (command === undefined) {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
} else {
  await run(command);
}

async function run(command: (host: Host) => Promise<void>): Promise<void> {
  try {
    await command({
      args,
      env: process.env,
      workingDir: process.cwd(),
      print: (line) => process.stdout.write(`${line}\n`),
      logDestination: process.stdout,
      untilStopRequested,
    });
  } catch (error) {
    process.stderr.write(`${describeFailure(error)}\n`);
    process.exitCode = 1;
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
    // SIGHUP: its terminal was closed.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
  });
  return stopRequested;
}
