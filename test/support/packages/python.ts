import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("../../../clients/python", import.meta.url));
/** Downloads some 50 MB, and unpacks 400 MB: more than 270 s on a machine that is oversubscribed. */
const INSTALL_TIMEOUT_MS = 900_000;
/** pip's words for a registry that gave no answer. A package that it does not have is another error. */
const NO_ANSWER = /Connection|Temporary failure|timed out|Network is unreachable|ProxyError/;
/** Set by `npm run test:languages`: tests need no network otherwise, but for npm's and Debian's packages. */
const MAY_DOWNLOAD = process.env.ONCEWARD_TEST_DOWNLOADS === "true";

/** A virtual environment, or why there is none. */
export type PythonEnvironment =
  | { readonly kind: "ready"; readonly python: string; readonly remove: () => Promise<void> }
  | { readonly kind: "missing"; readonly why: string };

/**
 * Builds the wheel of the Python client, and installs it with its tools in a new virtual environment.
 *
 * @throws Error if the wheel cannot be built or installed although PyPI answers.
 */
export async function installPythonClient(): Promise<PythonEnvironment> {
  if (!MAY_DOWNLOAD) return { kind: "missing", why: "npm run test:languages installs it from PyPI" };
  const dir = await mkdtemp(join(tmpdir(), "ow-python-"));
  const python = join(dir, "venv/bin/python");
  const isOld = "import sys; sys.exit(sys.version_info < (3, 10))";
  try {
    await run("python3", ["-c", isOld]);
    await run("python3", ["-m", "venv", join(dir, "venv")], { timeout: INSTALL_TIMEOUT_MS });
  } catch {
    return { kind: "missing", why: "there is no python3 of 3.10 or later with venv" };
  }
  const pip = (...args: string[]) => run(python, ["-m", "pip", ...args], { timeout: INSTALL_TIMEOUT_MS });
  try {
    await pip("wheel", "--quiet", "--no-deps", "--wheel-dir", dir, PACKAGE);
    const [wheel = ""] = (await readdir(dir)).filter((file) => file.endsWith(".whl"));
    await pip("install", "--quiet", `${join(dir, wheel)}[dev,integrations]`);
  } catch (error) {
    if (NO_ANSWER.test(`${(error as { stderr?: string }).stderr}`))
      return { kind: "missing", why: "PyPI does not answer" };
    throw error;
  }
  return { kind: "ready", python, remove: () => rm(dir, { recursive: true, force: true }) };
}
