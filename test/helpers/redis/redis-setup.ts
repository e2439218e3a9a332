import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { findRedisProgram } from "../../../server/dev/embedded/redis.ts";

const run = promisify(execFile);
/** A package mirror that does not answer must not block the tests. */
const INSTALL_TIMEOUT_MS = 120_000;

/**
 * Finds the Redis for the tests, and openssl for its certificates. Installs Redis if there is none and the
 * user can; at most once.
 */
export default async function setup(project: TestProject): Promise<void> {
  const path = process.env.PATH ?? "";
  let program = await findRedisProgram(path);
  if (program === undefined && process.getuid?.() === 0) {
    await installRedis().catch(() => {});
    program = await findRedisProgram(path);
  }
  if (program === undefined) {
    process.stderr.write(
      "Tests with Redis are left out: install redis-server or valkey-server to run them.\n",
    );
  }
  project.provide("redisProgram", program ?? "");
}

async function installRedis(): Promise<void> {
  // RUNLEVEL: the package's own service isn't started.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const options = { env, signal: AbortSignal.timeout(INSTALL_TIMEOUT_MS) };
  const install = () =>
    run("apt-get", ["install", "--yes", "--no-install-recommends", "redis-server", "openssl"], options);
  await install().catch(async () => {
    await run("apt-get", ["update"], options);
    await install();
  });
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The program redis-server or valkey-server; empty if neither is installed. */
    readonly redisProgram: string;
  }
}
