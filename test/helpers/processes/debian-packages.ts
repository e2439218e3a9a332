import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Debian's directories of programs for administrators, which other users do not have in PATH. */
const ADMIN_DIRS = ["/usr/sbin", "/sbin"];

/** Whether this user can install Debian packages. */
export function canInstallPackages(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Installs Debian packages with `apt-get`, without starting their services. Updates the lists of packages if
 * the first attempt fails.
 *
 * @param timeoutMs bounds the whole installation: a package mirror that does not answer must not block the tests.
 * @throws Error if a package cannot be installed.
 */
export async function installPackages(packages: readonly string[], timeoutMs: number): Promise<void> {
  // RUNLEVEL: the packages' own services are not started.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const options = { env, signal: AbortSignal.timeout(timeoutMs) };
  const install = () => run("apt-get", ["install", "--yes", "--no-install-recommends", ...packages], options);
  await install().catch(async () => {
    await run("apt-get", ["update"], options);
    await install();
  });
}

/** Returns the path of an installed program; undefined: it is not installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const dir of [...(process.env.PATH ?? "").split(delimiter), ...ADMIN_DIRS]) {
    const file = join(dir, name);
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
