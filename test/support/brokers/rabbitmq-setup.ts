import type { TestProject } from "vitest/node";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";
import { hasRabbitMq, RABBITMQ_DIR } from "./rabbitmq-broker.ts";

const INSTALL_TIMEOUT_MS = 240_000;

/** Finds the RabbitMQ for the tests, and installs one if there is none and the user can; at most once. */
export default async function setup(project: TestProject): Promise<void> {
  if (!(await hasRabbitMq()) && canInstallPackages()) {
    await installPackages(["rabbitmq-server"], INSTALL_TIMEOUT_MS).catch(() => {});
  }
  const installed = await hasRabbitMq();
  if (!installed) {
    process.stderr.write("Tests with RabbitMQ are skipped: install rabbitmq-server to run them.\n");
  }
  project.provide("rabbitmqDir", installed ? RABBITMQ_DIR : "");
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The directory of RabbitMQ's programs; empty if it is not installed. */
    readonly rabbitmqDir: string;
  }
}
