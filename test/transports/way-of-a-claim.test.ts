import { readFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connectClient } from "../helpers/calls/clients.ts";
import { grant, ORDER } from "../helpers/calls/verbs.ts";
import { createTestDatabase } from "../helpers/database/database.ts";
import { startTestServer } from "../helpers/servers/server.ts";
import { createTenant, setNamespacePolicy } from "../helpers/servers/tenants.ts";

const SOURCE = fileURLToPath(new URL("../../server/src/", import.meta.url));
const README = new URL("../../server/README.md", import.meta.url);
/**
 * A newcomer reads these files to understand one call: a change may take files away, and adds one only for a promise of the
 * contract.
 */
const MAX_FILES = 36;
/** A background task may run during one claim, but hardly during each of these. */
const CLAIMS = 12;

/** What vitest adds to a module for each of its exports; Node itself has no such functions. */
const EXPORT_GETTER = /^\(\) ?=> ?\{? ?(?:try ?\{ ?)?return /;

/** The lookup in the cache of policies that every other function of the file uses: as V8 names it. */
const POLICY_LOOKUP = { file: "core/store/tenants/loaded-namespaces.ts", name: "#find" };

/** What ran since coverage was last taken: the server's files, and how often a policy was looked up. */
interface Ran {
  readonly files: Set<string>;
  readonly policyLookups: number;
}

/** Returns the server's files of which V8 has run a function since coverage was last taken. */
async function takeRan(session: Session): Promise<Ran> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const files = new Set<string>();
  let policyLookups = 0;
  for (const { scriptId, url, functions } of result) {
    const path = relative(SOURCE, url.startsWith("file:") ? fileURLToPath(url) : url);
    if (path.startsWith("..") || path.startsWith("gen/")) continue;
    const { scriptSource } = await session.post("Debugger.getScriptSource", { scriptId });
    const ran = functions.some(({ ranges: [range] }) => {
      if (range === undefined || range.count === 0) return false;
      return !EXPORT_GETTER.test(scriptSource.slice(range.startOffset, range.endOffset));
    });
    if (ran) files.add(path);
    if (path !== POLICY_LOOKUP.file) continue;
    for (const { functionName, ranges } of functions) {
      if (functionName === POLICY_LOOKUP.name) policyLookups += ranges[0]?.count ?? 0;
    }
  }
  return { files, policyLookups };
}

test("a granted Claim looks up its policy once, and runs through the files that the server's README lists", async () => {
  const database = await createTestDatabase();
  const server = await startTestServer(database.url);
  const session = new Session();
  session.connect();
  try {
    const tenant = await createTenant(database);
    await setNamespacePolicy(database, tenant, ORDER.namespace, { default_lease_ms: 30_000 });
    const client = connectClient(server, tenant.apiKey);
    // The first claim of a tenant loads its key and its policy.
    await grant(client, { key: "warm-up" });
    await session.post("Debugger.enable");
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    const runs: Ran[] = [];
    for (let i = 0; i < CLAIMS; i++) {
      // Forgets what ran before: reading the files below takes longer than a claim, and tasks run meanwhile.
      await session.post("Profiler.takePreciseCoverage");
      await grant(client, { key: `order-${i}` });
      runs.push(await takeRan(session));
    }
    expect(runs.map(({ policyLookups }) => policyLookups)).toEqual(Array(CLAIMS).fill(1));
    const [first = new Set<string>(), ...others] = runs.map((run) => run.files);
    const files = others.reduce((all, run) => all.intersection(run), first);
    const [, list = ""] =
      /<!-- way of a claim -->\n([\s\S]*?)<!-- end -->/.exec(await readFile(README, "utf8")) ?? [];
    const listed = [...list.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => path);
    expect([...files].sort()).toEqual(listed.sort());
    expect(files.size).toBeLessThanOrEqual(MAX_FILES);
  } finally {
    session.disconnect();
    await server.stop();
  }
});
