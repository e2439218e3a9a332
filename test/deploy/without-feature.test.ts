import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { connectClient } from "../helpers/calls/clients.ts";
import { grant } from "../helpers/calls/verbs.ts";
import { createTestDatabase } from "../helpers/database/database.ts";
import { CHILD_ENVIRONMENT } from "../helpers/processes/child-environment.ts";
import { startServerProcess } from "../helpers/servers/server-process.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FEATURES = "server/src/features.ts";

/** Copies the repository's files without a feature's folder and its line in the composition. @returns the copy's root. */
async function copyWithout(feature: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "onceward-without-"));
  onTestFinished(() => rm(copy, { recursive: true }));
  const { stdout } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: ROOT,
    maxBuffer: 16 * 1024 * 1024,
  });
  for (const file of stdout.split("\0")) {
    if (file === "" || file.startsWith(`server/src/features/${feature}/`)) continue;
    await mkdir(dirname(join(copy, file)), { recursive: true });
    await cp(join(ROOT, file), join(copy, file), { verbatimSymlinks: true });
  }
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const list = await readFile(join(copy, FEATURES), "utf8");
  const [line, name] =
    new RegExp(`import \\{ (\\w+) \\} from "./features/${feature}/feature.ts";\n`).exec(list) ?? [];
  if (line === undefined) throw new Error(`${FEATURES} does not list ${feature}`);
  await writeFile(
    join(copy, FEATURES),
    list.replace(line, "").replace(new RegExp(`\\b${name}(,\\s*|(?=\\]))`), ""),
  );
  return copy;
}

test.each(["insight", "console", "citus"])(
  "a server without the feature %s compiles, passes the core's tests, and serves",
  async (feature) => {
    const copy = await copyWithout(feature);
    const inCopy = { cwd: copy, env: CHILD_ENVIRONMENT };
    await run("node_modules/.bin/tsc", ["-p", "server/tsconfig.build.json", "--noEmit"], inCopy);
    const tests = ["run", "--project=unit", "--maxWorkers=1", "--reporter=dot", "server/src/core"];
    await run("node_modules/.bin/vitest", tests, inCopy);

    const database = await createTestDatabase();
    const server = await startServerProcess(database.url, {}, [join(copy, "server/src/main.ts"), "serve"]);
    onTestFinished(() => server.end());
    const client = connectClient(server, (await createTenant(database)).apiKey);
    expect(await grant(client, { key: "without-a-feature" })).toMatchObject({ attempt: 1 });
  },
  300_000,
);
