import pg from "pg";
import { readBackend, withConnection } from "./connection.ts";
import { START_UP_SETTINGS } from "./pool.ts";

/** The connection of this process to Postgres: through a pooler, or direct. */
export interface Pooler {
  /**
   * `none`: the connection leads to Postgres itself. `session`: to a pooler that keeps a server connection for
   * each client. `transaction`: to one that gives it to another client after each transaction.
   */
  readonly mode: "none" | "session" | "transaction";
  /** Whether it accepts a connection with the settings that a pool sends without `ONCEWARD_PGBOUNCER`. */
  readonly acceptsSettings: boolean;
}

const DIRECT: Pooler = { mode: "none", acceptsSettings: true };

/** Limits for each connection and query. A pooler without a free server connection lets queries wait. */
const LIMITS = { connectionTimeoutMillis: 3000, query_timeout: 2000, application_name: "onceward" };

/**
 * Queries by turns on two connections. An idle pooler gives the server connection that it used last to the
 * next client, so that two queries suffice; more are for a busy pooler, and for one that takes turns.
 */
const ROUNDS = 10;

/**
 * Detects whether connections go through a pooler, with at most three connections; one if they are
 * direct.
 *
 * A pooler gives its clients other process numbers than those of Postgres. In transaction mode, a client
 * sees several numbers of Postgres' processes, or two connected clients see the same.
 *
 * @throws Error if the database cannot be reached.
 */
export function probePooler(databaseUrl: string): Promise<Pooler> {
  const config = { ...LIMITS, connectionString: databaseUrl };
  return withConnection(config, async (first) => {
    const backend = await readBackend(first);
    if (backend === announcedBackend(first)) return DIRECT;
    const mode = (await isShared(first, config)) ? "transaction" : "session";
    return { mode, acceptsSettings: await acceptsSettings(config) };
  });
}

async function isShared(first: pg.Client, config: pg.ClientConfig): Promise<boolean> {
  try {
    return await withConnection(config, async (second) => {
      const seen = { first: new Set<number>(), second: new Set<number>() };
      for (let round = 0; round < ROUNDS; round++) {
        seen.first.add(await readBackend(first));
        seen.second.add(await readBackend(second));
        if (seen.first.size > 1 || !seen.first.isDisjointFrom(seen.second)) return true;
      }
      return false;
    });
  } catch (error) {
    // In session mode, a second client waits if the first one has the only server connection.
    if (error instanceof pg.DatabaseError) throw error;
    return false;
  }
}

/** PgBouncer refuses a setting that it does not know with protocol_violation. */
const PROTOCOL_VIOLATION = "08P01";

async function acceptsSettings(config: pg.ClientConfig): Promise<boolean> {
  try {
    await withConnection({ ...config, ...START_UP_SETTINGS }, async () => {});
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === PROTOCOL_VIOLATION) return false;
    throw error;
  }
}

/** Returns the process number that the other side of the connection gave for cancel requests. */
function announcedBackend(client: pg.Client): number | null {
  return (client as unknown as { readonly processID: number | null }).processID;
}

/** Returns why a replica could not serve through this pooler without ONCEWARD_PGBOUNCER; undefined if it can. */
export function whyPgBouncerSwitchIsMissing(
  { mode, acceptsSettings }: Pooler,
  { ONCEWARD_PGBOUNCER: isSet }: { readonly ONCEWARD_PGBOUNCER: boolean },
): string | undefined {
  if (isSet) return undefined;
  if (mode === "transaction") {
    return "DATABASE_URL leads to a pooler in transaction mode (PgBouncer), and ONCEWARD_PGBOUNCER is not true.";
  }
  return acceptsSettings
    ? undefined
    : "DATABASE_URL leads to a pooler that refuses the service's settings (PgBouncer), and ONCEWARD_PGBOUNCER is not true.";
}
