import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

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
