import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { plantSeed, type Seed } from "./seed.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Takes seconds on an idle machine. */
const BUILD_TIMEOUT_MS = 180_000;

/** Builds the console, and plants the traffic that its screens show, unless there is no browser. */
export default async function setup(project: TestProject): Promise<void> {
  const { browserEndpoint, postgresUrl } = project.getProvidedContext();
  if (browserEndpoint === "") return;
  // Before: the servers that plant read the files, and a build replaces these.
  await buildConsole();
  project.provide("seed", await plantSeed(postgresUrl));
}

async function buildConsole(): Promise<void> {
  await run("npm", ["run", "--silent", "build:console"], {
    cwd: ROOT,
    timeout: BUILD_TIMEOUT_MS,
  });
}

declare module "vitest" {
  export interface ProvidedContext {
    /** What `plantSeed` planted; absent if there is no browser. */
    readonly seed: Seed;
  }
}
