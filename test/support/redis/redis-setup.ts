import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { findRedisProgram } from "../../../server/dev/embedded/redis.ts";
import { canInstallPackages, installPackages } from "../processes/debian-packages.ts";

const INSTALL_TIMEOUT_MS = 120_000;
const run = promisify(execFile);

/**
 * Finds the Redis for the tests, and openssl for its certificates: the program that `ONCEWARD_TEST_REDIS` names, or the
 * machine's. Installs Redis if there is none and the user can; at most once.
 *
 * @throws Error if the named program is neither a Redis nor a Valkey.
 */
export default async function setup(project: TestProject): Promise<void> {
  const path = process.env.PATH ?? "";
  const named = process.env.ONCEWARD_TEST_REDIS;
  if (named !== undefined) process.stderr.write(`Tests with Redis run on ${await versionOf(named)}\n`);
  let program = named ?? (await findRedisProgram(path));
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
  const hasTls = program !== undefined && (await speaksTls(program));
  if (program !== undefined && !hasTls) {
    process.stderr.write("Tests with Redis over TLS are skipped: the program was built without TLS.\n");
  }
  project.provide("redisHasTls", hasTls);
}

async function versionOf(program: string): Promise<string> {
  const { stdout } = await run(program, ["--version"]);
  if (!/^(Redis|Valkey) server v=/.test(stdout)) throw new Error(`${program} is not a Redis: ${stdout}`);
  return stdout.trim();
}

/** Starts the server with a port for TLS and no certificate: it ends, and only a build with TLS misses the certificate. */
async function speaksTls(program: string): Promise<boolean> {
  const args = ["--port", "0", "--tls-port", "1", "--save", "", "--logfile", ""];
  const { stdout } = await run(program, args, { timeout: INSTALL_TIMEOUT_MS }).catch(
    (error) => error as { stdout: string },
  );
  return stdout.includes("tls-cert-file");
}

declare module "vitest" {
  export interface ProvidedContext {
    /** The program redis-server or valkey-server; empty if neither is installed. */
    readonly redisProgram: string;
    /** Whether that program can listen with TLS, which builds without OpenSSL cannot. */
    readonly redisHasTls: boolean;
  }
}
