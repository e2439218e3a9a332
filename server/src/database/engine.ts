import { withConnection } from "./connection.ts";
import type { Runner } from "./pool.ts";

/** Limit for the question; an engine that does not answer it in time answers nothing else. */
const QUERY_TIMEOUT_MS = 10_000;

/** A database that speaks Postgres' protocol and breaks a promise of the service. */
export interface UnsupportedEngine {
  readonly name: string;
  /** Matches what `version()` of the engine returns. */
  readonly version: RegExp;
  /** One sentence: what breaks. */
  readonly reason: string;
}

/** Engines that answer `version()` by their own name: server/decisions/0017-other-engines.md. */
const UNSUPPORTED: readonly UnsupportedEngine[] = [
  {
    name: "CockroachDB",
    // "CockroachDB CCL v24.1.0 (…)".
    version: /^CockroachDB /,
    reason:
      "now() is the clock of the node that a client is connected to, so a lease can be granted while it is held.",
  },
  {
    name: "YugabyteDB",
    // "PostgreSQL 11.2-YB-2.20.1.0-b0 on …".
    version: /-YB-\d/,
    reason: "Fencing tokens and leases need one clock for a key, and each of its nodes has its own.",
  },
];

/** Returns the engine that a text of `version()` names; undefined unless it is known to be unsupported. */
export function unsupportedEngineOf(text: string): UnsupportedEngine | undefined {
  return UNSUPPORTED.find(({ version }) => version.test(text));
}

/** In another encoding, Postgres refuses keys whose characters it lacks, or counts bytes where characters are compared. */
const ENCODING = "UTF8";

/** Asks the database for its engine and encoding, on a connection of its own; undefined if it may be used. */
export function readUnsupportedEngine(
  databaseUrl: string,
): Promise<Omit<UnsupportedEngine, "version"> | undefined> {
  const config = { connectionString: databaseUrl, query_timeout: QUERY_TIMEOUT_MS };
  return withConnection(config, async (client) => {
    const question = "select version() as version, current_setting('server_encoding') as encoding";
    const { rows } = await client.query<{ version: string; encoding: string }>(question);
    const { version = "", encoding = ENCODING } = rows[0] ?? {};
    return unsupportedEngineOf(version) ?? unsupportedEncoding(encoding);
  });
}

function unsupportedEncoding(encoding: string): Omit<UnsupportedEngine, "version"> | undefined {
  if (encoding === ENCODING) return undefined;
  return {
    name: `in the encoding ${encoding}`,
    reason:
      "It cannot hold every key: create it with `create database NAME encoding 'UTF8' template template0`.",
  };
}

const readExtension = {
  name: "read_citus_extension",
  text: "select extversion as version from pg_extension where extname = 'citus'",
};

/** Returns whether the database has the extension citus. */
export async function hasCitus(runner: Runner): Promise<boolean> {
  return (await runner.run(readExtension, [])).length > 0;
}
