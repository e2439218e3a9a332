import { readFile, writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import pg from "pg";
import { connectClient } from "../../support/calls/clients.ts";
import { grant, ORDER } from "../../support/calls/verbs.ts";
import { startTestServer } from "../../support/servers/server.ts";
import { createTenant, setNamespacePolicy } from "../../support/servers/tenants.ts";
import { withMigratedPostgres } from "./migrated-postgres.ts";

const README = new URL("../../../server/README.md", import.meta.url);
const SOURCE = new URL("../../../server/src/", import.meta.url).href;
const TABLE = /(?<=<!-- way of a claim:.*-->\n)[\s\S]*?(?=<!-- \/way of a claim -->)/;
/** A newcomer reads these files to understand one call: a change adds one only for a promise of the contract. */
const MAX_FILES = 37;
const CLAIMS = 32;
/** A background task may run during some claims, but hardly as long during this many: the shortest way has none. */
const ENOUGH = 16;
const MAX_CLAIMS = 1024;

/** Writes the way of a granted Claim into `server/README.md`; by `npm run lab -- way`, on a machine that has nothing else to do. */
await withMigratedPostgres(async (url) => {
  const pool = new pg.Pool({ connectionString: url });
  const query = async (text: string, values: readonly unknown[] = []) =>
    (await pool.query(text, [...values])).rows;
  const server = await startTestServer(url);
  try {
    const database = { url, query, close: () => pool.end() };
    const tenant = await createTenant(database);
    await setNamespacePolicy(database, tenant, ORDER.namespace, { default_lease_ms: 30_000 });
    const client = connectClient(server, tenant.apiKey);
    // The first claim of a tenant loads its key and its policy.
    await grant(client, { key: "warm-up" });
    const way = await shortestWay((n) => grant(client, { key: `followed-${n}` }));
    await writeFile(README, withWay(await readFile(README, "utf8"), way));
  } finally {
    await server.stop();
    await pool.end();
  }
});

/**
 * Returns the files whose functions a claim enters, in order. Each function that ran as often as claims did gets a breakpoint,
 * whose condition notes the entry and is false, so that nothing stops.
 */
async function shortestWay(claim: (n: number) => Promise<unknown>): Promise<readonly string[]> {
  const session = new Session();
  session.connect();
  await session.post("Debugger.enable");
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true });
  for (let n = 0; n < CLAIMS; n++) await claim(n);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  let entered: string[] = [];
  Object.assign(globalThis, { onEntry: (file: string) => entered.push(file) === 0 });
  const ours = result.filter(({ url }) => url.startsWith(SOURCE) && !url.startsWith(`${SOURCE}gen/`));
  for (const { scriptId, url, functions } of ours) {
    const { scriptSource } = await session.post("Debugger.getScriptSource", { scriptId });
    for (const { ranges } of functions.filter((each) => (each.ranges[0]?.count ?? 0) >= CLAIMS)) {
      const lines = scriptSource.slice(0, ranges[0]?.startOffset).split("\n");
      const start = { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
      const { locations } = await session.post("Debugger.getPossibleBreakpoints", {
        start,
        restrictToFunction: true,
      });
      const condition = `onEntry(${JSON.stringify(url.slice(SOURCE.length))})`;
      for (const location of locations.slice(0, 1))
        await session.post("Debugger.setBreakpoint", { location, condition });
    }
  }
  // On a busy machine, most claims have a background task beside them.
  const ways: string[][] = [];
  const areShortest = () => {
    const entries = Math.min(...ways.map(({ length }) => length));
    return ways.filter(({ length }) => length === entries).length;
  };
  for (let n = CLAIMS; n < MAX_CLAIMS && areShortest() < ENOUGH; n++) {
    entered = [];
    await claim(n);
    ways.push(entered);
  }
  session.disconnect();
  return ways.sort((a, b) => a.length - b.length)[0] ?? [];
}

/**
 * Returns the README with these files as its way, and how often each is entered from another one.
 *
 * @throws Error if there are too many, or if the README does not say the part of one.
 */
function withWay(readme: string, way: readonly string[]): string {
  const entries = Map.groupBy(
    way.filter((file, index) => file !== way[index - 1]),
    (file) => file,
  );
  if (entries.size > MAX_FILES) throw new Error(`a claim runs through ${entries.size} files`);
  const rows = [...entries].map(([file, { length }]) => {
    const [, part] = new RegExp(`^\\| \`${file}\` \\| \\d+ (\\|.*)$`, "m").exec(readme) ?? [];
    if (part === undefined)
      throw new Error(`server/README.md: add ${file} to the way of a claim, with its part`);
    return `| \`${file}\` | ${length} ${part}\n`;
  });
  return readme.replace(TABLE, () => `\n| file | entered | its part |\n|---|---|---|\n${rows.join("")}\n`);
}
