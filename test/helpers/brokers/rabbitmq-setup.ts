import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";

const run = promisify(execFile);
/** A package mirror that does not answer must not block the tests. */
const INSTALL_TIMEOUT_MS = 240_000;
/** Debian's directory of programs. The one in PATH runs only as RabbitMQ's user or as root. */
const DIR = "/usr/lib/rabbitmq/bin";

/** Finds the RabbitMQ for the tests, and installs one if there is none and the user can; at most once. */
export default async function setup(project: TestProject): Promise<void> {
  if (!(await isInstalled()) && process.getuid?.() === 0) await installRabbitMq().catch(() => {});
  const installed = await isInstalled();
  if (!installed) {
    process.stderr.write("Tests with RabbitMQ are left out: install rabbitmq-server to run them.\n");
  }
  project.provide("rabbitmqDir", installed ? DIR : "");
}

function isInstalled(): Promise<boolean> {
  return access(`${DIR}/rabbitmq-server`, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function installRabbitMq(): Promise<void> {
  // RUNLEVEL: the package's own service isn't started.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const options = { env, signal: AbortSignal.timeout(INSTALL_TIMEOUT_MS) };
  const install = () =>
    run("apt-get", ["install", "--yes", "--no-install-recommends", "rabbitmq-server"], options);
  await install().catch(async () => {
    await run("apt-get", ["update"], options);
    await install();
  });
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The directory of RabbitMQ's programs; empty if it is not installed. */
    readonly rabbitmqDir: string;
  }
}
