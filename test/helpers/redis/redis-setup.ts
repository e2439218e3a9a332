import type { TestProject } from "vitest/node";
import { findRedisProgram } from "../../../server/dev/embedded/redis.ts";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

const INSTALL_TIMEOUT_MS = 120_000;

/**
 * Finds the Redis for the tests, and openssl for its certificates. Installs Redis if there is none and the
 * user can; at most once.
 */
export default async function setup(project: TestProject): Promise<void> {
  const path = process.env.PATH ?? "";
  let program = await findRedisProgram(path);
  if (program === undefined && canInstallPackages()) {
    await installPackages(["redis-server", "openssl"], INSTALL_TIMEOUT_MS).catch(() => {});
    program = await findRedisProgram(path);
  }
  if (program === undefined) {
    process.stderr.write(
      "Tests with Redis are skipped: install redis-server or valkey-server to run them.\n",
    );
  }
  project.provide("redisProgram", program ?? "");
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The program redis-server or valkey-server; empty if neither is installed. */
    readonly redisProgram: string;
  }
}
