import type { TestProject } from "vitest/node";
import { findProgram } from "../../../deploy/release/commands.ts";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

const INSTALL_TIMEOUT_MS = 240_000;

/** The programs of tests in `test/deploy`, and the Debian package of each. */
const PACKAGES: Readonly<Record<ProgramName, string>> = {
  haproxy: "haproxy",
  prometheus: "prometheus",
  promtool: "prometheus",
  "prometheus-blackbox-exporter": "prometheus-blackbox-exporter",
  "prometheus-alertmanager": "prometheus-alertmanager",
  amtool: "prometheus-alertmanager",
  psql: "postgresql-client",
  "docker-compose": "docker-compose",
  buildah: "buildah",
  debootstrap: "debootstrap",
};

/** Building the image takes minutes, and root for its chroot. */
const IMAGE_PROGRAMS: readonly ProgramName[] = ["buildah", "debootstrap"];

/** A program that tests in `test/deploy` need, and that is installed as a Debian package. */
export type ProgramName =
  | "haproxy"
  | "prometheus"
  | "promtool"
  | "prometheus-blackbox-exporter"
  | "prometheus-alertmanager"
  | "amtool"
  | "psql"
  | "docker-compose"
  | "buildah"
  | "debootstrap";

/**
 * Finds the programs for the tests of `deploy/`. Installs those that are missing if the user can; at most
 * once. Prints which are still missing: their tests are skipped.
 */
export default async function setup(project: TestProject): Promise<void> {
  const buildsImage = process.env.ONCEWARD_TEST_IMAGE === "true" && canInstallPackages();
  if (!buildsImage && project.name === "deploy") {
    process.stderr.write("Tests of the image are skipped: set ONCEWARD_TEST_IMAGE=true, as root.\n");
  }
  const names = (Object.keys(PACKAGES) as ProgramName[]).filter(
    (name) => buildsImage || !IMAGE_PROGRAMS.includes(name),
  );
  let programs = await findPrograms(names);
  const missing = names.filter((name) => programs[name] === undefined);
  if (missing.length > 0 && canInstallPackages()) {
    const packages = [...new Set(missing.map((name) => PACKAGES[name]))];
    await installPackages(packages, INSTALL_TIMEOUT_MS).catch(() => {});
    programs = await findPrograms(names);
  }
  for (const name of names.filter((name) => programs[name] === undefined)) {
    process.stderr.write(`Tests with ${name} are skipped: install ${PACKAGES[name]} to run them.\n`);
  }
  project.provide("programs", programs);
}

type Programs = Readonly<Partial<Record<ProgramName, string>>>;

/** Returns the paths of the programs that are installed. */
async function findPrograms(names: readonly ProgramName[]): Promise<Programs> {
  const found = await Promise.all(names.map(async (name) => [name, await findProgram(name)] as const));
  return Object.fromEntries(found.filter(([, path]) => path !== undefined));
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The paths of the installed programs. */
    readonly programs: Programs;
  }
}
