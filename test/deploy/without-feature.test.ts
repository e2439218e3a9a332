import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { grant } from "../support/calls/verbs.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { CHILD_ENVIRONMENT } from "../support/processes/child-environment.ts";
import { startServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FEATURES = "server/src/replica/features.ts";
const REMOVABLE = ["insight", "console", "citus"];
const TIMEOUT_MS = 300_000;

/** Copies the repository's files without the folders of features and their lines in the composition. @returns the copy's root. */
async function copyWithout(features: readonly string[]): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "onceward-without-"));
  onTestFinished(() => rm(copy, { recursive: true }));
  const { stdout } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: ROOT,
    maxBuffer: 16 * 1024 * 1024,
  });
  for (const file of stdout.split("\0")) {
    if (file === "" || features.some((name) => file.startsWith(`server/src/features/${name}/`))) continue;
    await mkdir(dirname(join(copy, file)), { recursive: true });
    await cp(join(ROOT, file), join(copy, file), { verbatimSymlinks: true });
  }
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const list = await readFile(join(copy, FEATURES), "utf8");
  await writeFile(join(copy, FEATURES), features.reduce(withoutLine, list));
  return copy;
}

function withoutLine(list: string, feature: string): string {
  const [line, name] =
    new RegExp(`import \\{ (\\w+) \\} from "./features/${feature}/feature.ts";\n`).exec(list) ?? [];
  if (line === undefined) throw new Error(`${FEATURES} does not list ${feature}`);
  return list.replace(line, "").replace(new RegExp(`\\b${name}(,\\s*|(?=\\]))`), "");
}

test.each(REMOVABLE)(
  "a server without the feature %s compiles and serves",
  async (feature) => {
    const copy = await copyWithout([feature]);
    await run("node_modules/.bin/tsc", ["-p", "server/tsconfig.build.json", "--noEmit"], inCopy(copy));

    const database = await createTestDatabase();
    const server = await startServerProcess(database.url, {}, [join(copy, "server/src/main.ts"), "serve"]);
    onTestFinished(() => server.end());
    const client = connectClient(server, (await createTenant(database)).apiKey);
    expect(await grant(client, { key: "without-a-feature" })).toMatchObject({ attempt: 1 });
  },
  TIMEOUT_MS,
);

test(
  "the core's tests pass without any of these features",
  async () => {
    const tests = [
      "run",
      "--project=unit",
      "--maxWorkers=2",
      "--reporter=dot",
      "server/src/core",
      "server/src/records",
    ];
    await run("node_modules/.bin/vitest", tests, inCopy(await copyWithout(REMOVABLE)));
  },
  TIMEOUT_MS,
);

function inCopy(cwd: string) {
  return { cwd, env: CHILD_ENVIRONMENT };
}
