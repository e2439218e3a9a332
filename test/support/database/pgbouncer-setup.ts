import { access, constants } from "node:fs/promises";
import type { TestProject } from "vitest/node";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

const PROGRAM = "/usr/sbin/pgbouncer";
const INSTALL_TIMEOUT_MS = 120_000;

/** Finds the PgBouncer for the tests, and installs one if there is none and the user can; at most once. */
export default async function setup(project: TestProject): Promise<void> {
  if (!(await isInstalled()) && canInstallPackages()) {
    await installPackages(["pgbouncer"], INSTALL_TIMEOUT_MS).catch(() => {});
  }
  const installed = await isInstalled();
  if (!installed) process.stderr.write("Tests with PgBouncer are skipped: install pgbouncer to run them.\n");
  project.provide("pgBouncerProgram", installed ? PROGRAM : "");
}

function isInstalled(): Promise<boolean> {
  return access(PROGRAM, constants.X_OK).then(
    () => true,
    () => false,
  );
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The program pgbouncer; empty if it is not installed. */
    readonly pgBouncerProgram: string;
  }
}
