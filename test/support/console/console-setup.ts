import type { TestProject } from "vitest/node";
import { buildConsole } from "../../../server/dev/console.ts";
import { plantSeed, type Seed } from "./seed.ts";

/** Builds the console, and plants the traffic that its screens show, unless there is no browser. */
export default async function setup(project: TestProject): Promise<void> {
  const { browserEndpoint, postgresUrl } = project.getProvidedContext();
  if (browserEndpoint === "") return;
  // Before: the servers that plant read the files, and a build replaces these.
  await buildConsole();
  project.provide("seed", await plantSeed(postgresUrl));
}

declare module "vitest" {
  export interface ProvidedContext {
    /** What `plantSeed` planted; absent if there is no browser. */
    readonly seed: Seed;
  }
}
