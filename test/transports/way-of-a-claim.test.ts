import { readFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connectClient } from "../helpers/calls/clients.ts";
import { grant } from "../helpers/calls/verbs.ts";
import { createTestDatabase } from "../helpers/database/database.ts";
import { startTestServer } from "../helpers/servers/server.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

const SOURCE = fileURLToPath(new URL("../../server/src/", import.meta.url));
const README = new URL("../../server/README.md", import.meta.url);
/** What a newcomer can be asked to read to understand one call. */
const MAX_FILES = 30;
/** A background task may run during one claim, but hardly during each of these. */
const CLAIMS = 5;

/** Returns the server's files of which V8 has run a function since the last call. */
async function filesRun(session: Session): Promise<Set<string>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const ran = result.filter(({ functions }) => functions.some(({ ranges: [range] }) => (range?.count ?? 0) > 0));
  const paths = ran.map(({ url }) => relative(SOURCE, url.startsWith("file:") ? fileURLToPath(url) : url));
  return new Set(paths.filter((path) => !path.startsWith("..") && !path.startsWith("gen/")));
}

test("the files that a granted Claim runs through are those that the server's README lists", async () => {
  const database = await createTestDatabase();
  const server = await startTestServer(database.url);
  const session = new Session();
  session.connect();
  try {
    const client = connectClient(server, (await createTenant(database)).apiKey);
    // The first claim of a tenant loads its key and its policy.
    await grant(client, { key: "warm-up" });
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    const runs: Set<string>[] = [];
    for (let i = 0; i < CLAIMS; i++) {
      await filesRun(session);
      await grant(client, { key: `order-${i}` });
      runs.push(await filesRun(session));
    }
    const [first = new Set<string>(), ...others] = runs;
    const files = others.reduce((all, run) => all.intersection(run), first);

    expect(files.size).toBeLessThanOrEqual(MAX_FILES);
    const [, list = ""] = /<!-- way of a claim -->\n([\s\S]*?)<!-- end -->/.exec(await readFile(README, "utf8")) ?? [];
    const listed = [...list.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => path);
    expect([...files].sort()).toEqual(listed.sort());
  } finally {
    session.disconnect();
    await server.stop();
  }
});
