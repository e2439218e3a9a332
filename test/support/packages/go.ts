import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { firstBlock } from "../processes/readme.ts";
import { refuseUnlisted, skippedByGo } from "./suite-skips.ts";

const run = promisify(execFile);
export const GO_CLIENT = fileURLToPath(new URL("../../../clients/go", import.meta.url));
/** The first build downloads and compiles gRPC, with the race detector on a machine that is busy. */
export const GO_TIMEOUT_MS = 600_000;
/** Go's words for a proxy of modules that gave no answer. A module that it does not have is another error. */
const NO_ANSWER =
  /dial tcp|no such host|connection refused|i\/o timeout|TLS handshake|network is unreachable/;
/** Set by `npm run test:languages`: tests need no network otherwise, but for npm's and Debian's packages. */
const MAY_DOWNLOAD = process.env.ONCEWARD_TEST_DOWNLOADS === "true";

/** An empty module that requires the Go client, or why there is none. */
export type GoEnvironment =
  | { readonly kind: "ready"; readonly dir: string; readonly remove: () => Promise<void> }
  | { readonly kind: "missing"; readonly why: string };

/** Runs `go` in a folder. Returns its output. */
export async function go(dir: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { cwd: dir, env: { ...process.env, ...env }, timeout: GO_TIMEOUT_MS, maxBuffer: 2 ** 24 };
  const { stdout } = await run("go", [...args], options);
  return stdout;
}

/**
 * Runs `go test` in a folder.
 *
 * @throws Error if a test fails, if none passes, or as `refuseUnlisted` does.
 */
export async function goTest(
  dir: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  const report = await go(dir, ["test", "-json", ...args], env);
  if (!report.includes('"Action":"pass"')) throw new Error("no test has passed");
  refuseUnlisted(skippedByGo(report));
}

/** Returns the arguments of the README's `go mod edit`, for the copy of the client. @throws Error if it changed. */
async function editOfReadme(): Promise<readonly string[]> {
  const block = await firstBlock("clients/go/README.md", "sh");
  const [init = "", edit = "", ...then] = block.trim().split("\n");
  const steps = [init.split(" example.com")[0], ...then];
  if (!edit.endsWith("=../onceward/clients/go") || steps.join() !== "go mod init,go mod tidy,go run .")
    throw new Error(`clients/go/README.md installs in another way: ${block}`);
  return edit.replace("../onceward/clients/go", "./client").split(" ").slice(1);
}

/**
 * Makes an empty module outside the repository that requires a copy of the Go client's.
 *
 * @throws Error if its dependencies cannot be had although the proxy of modules answers.
 */
export async function installGoClient(): Promise<GoEnvironment> {
  if (!MAY_DOWNLOAD) return { kind: "missing", why: "npm run test:languages downloads its dependencies" };
  const dir = await mkdtemp(join(tmpdir(), "ow-go-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    await go(dir, ["version"]);
  } catch {
    await remove();
    return { kind: "missing", why: "there is no go" };
  }
  try {
    await cp(GO_CLIENT, join(dir, "client"), { recursive: true });
    await go(join(dir, "client"), ["mod", "download"]);
    await go(dir, ["mod", "init", "example.com/billing"]);
    await go(dir, await editOfReadme());
  } catch (error) {
    await remove();
    if (NO_ANSWER.test(`${(error as { stderr?: string }).stderr}`))
      return { kind: "missing", why: "the proxy of Go modules does not answer" };
    throw error;
  }
  return { kind: "ready", dir, remove };
}
