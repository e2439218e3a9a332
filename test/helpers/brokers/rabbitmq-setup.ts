import { access, constants } from "node:fs/promises";
import type { TestProject } from "vitest/node";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

const INSTALL_TIMEOUT_MS = 240_000;
/** Debian's directory of programs. The one in PATH runs only as RabbitMQ's user or as root. */
const DIR = "/usr/lib/rabbitmq/bin";

/** Finds the RabbitMQ for the tests, and installs one if there is none and the user can; at most once. */
export default async function setup(project: TestProject): Promise<void> {
  if (!(await isInstalled()) && canInstallPackages()) {
    await installPackages(["rabbitmq-server"], INSTALL_TIMEOUT_MS).catch(() => {});
  }
  const installed = await isInstalled();
  if (!installed) {
    process.stderr.write("Tests with RabbitMQ are skipped: install rabbitmq-server to run them.\n");
  }
  project.provide("rabbitmqDir", installed ? DIR : "");
}

function isInstalled(): Promise<boolean> {
  return access(`${DIR}/rabbitmq-server`, constants.X_OK).then(
    () => true,
    () => false,
  );
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The directory of RabbitMQ's programs; empty if it is not installed. */
    readonly rabbitmqDir: string;
  }
}
