import { chmod, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { run } from "../commands.ts";

/** Entries of the client that need no framework. */
const ENTRIES = ["", "/admin", "/http", "/inbox", "/testing", "/web", "/webhooks"];

/**
 * Installs the tarballs into a project outside the repository and uses them: the client is imported, the command line and
 * the proxy print their version, and the server migrates an empty Postgres and contains the console's page. Returns what
 * did not work.
 *
 * @throws Error if npm cannot install them.
 */
export async function installedProblems(
  tarballs: readonly string[],
  version: string,
): Promise<readonly string[]> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "ow-release-")));
  try {
    // As root, Postgres runs as another user, who must have access.
    await chmod(dir, 0o755);
    await writeFile(join(dir, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const args = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    await run(dir, ["npm", "install", ...args, ...tarballs]);
    return [
      ...(await clientProblems(dir)),
      ...(await programProblems(dir, "onceward", version)),
      ...(await programProblems(dir, "onceward-mcp-proxy", version)),
      ...(await serverProblems(dir)),
    ];
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function clientProblems(dir: string): Promise<readonly string[]> {
  const imports = ENTRIES.map((entry) => `import "@onceward/client${entry}";\n`);
  const call =
    'import { createOnceward } from "@onceward/client";\nprocess.stdout.write(typeof createOnceward);\n';
  await writeFile(join(dir, "use.js"), `${imports.join("")}${call}`);
  return differs("@onceward/client exports", await attempt(dir, [process.execPath, "use.js"]), /^function$/);
}

async function programProblems(dir: string, name: string, version: string): Promise<readonly string[]> {
  const printed = await attempt(dir, [`node_modules/.bin/${name}`, "--version"]);
  return printed === `${version}\n` ? [] : [`${name} --version prints ${JSON.stringify(printed)}`];
}

async function serverProblems(dir: string): Promise<readonly string[]> {
  const server = "node_modules/.bin/onceward-server";
  const usage = differs(
    "onceward-server prints",
    await attempt(dir, [server, "--help"]),
    /onceward-server COMMAND/,
  );
  const postgres = await startEmbeddedPostgres({
    dataDir: join(dir, "postgres"),
    settings: { fsync: "off" },
  });
  try {
    await ensureDatabase(postgres.url("postgres"), "onceward");
    const env = { DATABASE_URL: postgres.url("onceward"), ONCEWARD_API_KEY_PEPPER: "p".repeat(32) };
    const current = /The schema is current\.\n$/;
    const migrated = await attempt(dir, [server, "migrate"], env);
    const checked = await attempt(dir, [server, "migrate", "--check"], env);
    const page = await readFile(join(dir, "node_modules/@onceward/server/console/index.html"), "utf8").catch(
      (error: Error) => error.message,
    );
    return [
      ...usage,
      ...differs("the console's page is", page, /^<!doctype html>/i),
      ...differs("onceward-server migrate prints", migrated, current),
      ...differs("onceward-server migrate --check prints", checked, current),
    ];
  } finally {
    await postgres.stop();
  }
}

/** Returns what a command prints, or why it failed. */
function attempt(
  dir: string,
  command: readonly string[],
  env?: Readonly<Record<string, string>>,
): Promise<string> {
  return run(dir, command, env).catch((error: Error) => error.message);
}

function differs(what: string, printed: string, expected: RegExp): readonly string[] {
  return expected.test(printed) ? [] : [`${what} ${JSON.stringify(printed)}`];
}
