import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import { connectClient } from "../../../helpers/calls/clients.ts";
import { grant, ORDER } from "../../../helpers/calls/verbs.ts";
import type { OpenDatabase } from "../../../helpers/database/database.ts";
import { startTestServer } from "../../../helpers/servers/server.ts";
import { createTenant, setNamespacePolicy } from "../../../helpers/servers/tenants.ts";
import { openEntries, type RanFunction } from "./entries.ts";

const SOURCE = new URL("../../../../server/src/", import.meta.url).href;
/** The search that every other function of the cache of policies uses. */
const POLICY_LOOKUP = `${SOURCE}core/store/tenants/loaded-namespaces.ts##find`;
/** A background task may run during one claim, but hardly during each of these. */
const CLAIMS = 16;
/** The way that so many claims went, and none went a shorter one. */
const SAME = 5;
/** On a busy machine, tasks run during most claims. */
const MAX_CLAIMS = 1000;

/** A file of the way. */
export interface Visited {
  /** Below `server/src/`. */
  readonly file: string;
  /** How often execution enters one of its functions from another file. */
  readonly entries: number;
}

/**
 * Returns the files that a granted Claim over native gRPC runs through in a namespace with a policy of its own, in the order in
 * which they are first entered. Generated code is not among them.
 *
 * @param databaseUrl a migrated database.
 * @throws Error if the claim does not look its policy up exactly once.
 */
export async function recordWay(databaseUrl: string): Promise<readonly Visited[]> {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  const database: OpenDatabase = {
    url: databaseUrl,
    query: async (text, values = []) => (await pool.query(text, [...values])).rows,
    close: () => pool.end(),
  };
  const server = await startTestServer(databaseUrl);
  const entries = await openEntries();
  try {
    const tenant = await createTenant(database);
    await setNamespacePolicy(database, tenant, ORDER.namespace, { default_lease_ms: 30_000 });
    const client = connectClient(server, tenant.apiKey);
    // The first claim of a tenant loads its key and its policy.
    await grant(client, { key: "warm-up" });

    const ran: (readonly RanFunction[])[] = [];
    for (let n = 0; n < CLAIMS; n++) {
      await entries.takeFunctions(SOURCE);
      await grant(client, { key: `counted-${n}` });
      ran.push((await entries.takeFunctions(SOURCE)).filter(isOnTheWay));
    }
    const inEach = ran
      .map((functions) => new Set(functions.map(nameOf)))
      .reduce((all, names) => all.intersection(names));
    await entries.follow(ran[0]?.filter((each) => inEach.has(nameOf(each))) ?? []);

    // A background task that runs during a claim only adds entries.
    let shortest: readonly string[] = [];
    let same = 0;
    for (let n = 0; same < SAME; n++) {
      if (n === MAX_CLAIMS) throw new Error(`background tasks ran during ${MAX_CLAIMS} claims`);
      entries.takeEntries();
      await grant(client, { key: `followed-${n}` });
      const way = entries.takeEntries();
      if (n === 0 || way.length < shortest.length) {
        shortest = way;
        same = 1;
      } else if (isDeepStrictEqual(way, shortest)) same++;
    }
    const lookups = shortest.filter((entry) => entry === POLICY_LOOKUP).length;
    if (lookups !== 1) throw new Error(`a claim looks its policy up ${lookups} times`);
    return visits(shortest.map((entry) => entry.replace(/#.*/, "")));
  } finally {
    entries.close();
    await server.stop();
    await database.close();
  }
}

const isOnTheWay = ({ url }: RanFunction) => !url.startsWith(`${SOURCE}gen/`);
const nameOf = ({ url, offset }: RanFunction) => `${url}:${offset}`;

/** Counts how often each file is entered from another one, in the order of the first entries. */
function visits(stops: readonly string[]): readonly Visited[] {
  const entries = new Map<string, number>();
  for (const [index, url] of stops.entries()) {
    if (url !== stops[index - 1]) entries.set(url, (entries.get(url) ?? 0) + 1);
  }
  return [...entries].map(([url, count]) => ({ file: url.slice(SOURCE.length), entries: count }));
}
