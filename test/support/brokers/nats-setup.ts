import type { TestProject } from "vitest/node";
import { findProgram } from "../../../deploy/release/commands.ts";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

const INSTALL_TIMEOUT_MS = 120_000;

/** Finds the NATS server for the tests, and installs one if there is none and the user can; at most once. */
export default async function setup(project: TestProject): Promise<void> {
  let program = await findProgram("nats-server");
  if (program === undefined && canInstallPackages()) {
    await installPackages(["nats-server"], INSTALL_TIMEOUT_MS).catch(() => {});
    program = await findProgram("nats-server");
  }
  if (program === undefined) {
    process.stderr.write("Tests with NATS are skipped: install nats-server to run them.\n");
  }
  project.provide("natsProgram", program ?? "");
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The program nats-server; empty if it is not installed. */
    readonly natsProgram: string;
  }
}
