import pg from "pg";
import { waitUntil } from "./wait.ts";

const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 10_000;
// A closed connection is listed until its backend has ended.
const SETTLE_MS = 1_000;

/**
 * One connection that shows other processes that this process uses the server, also while its pools are
 * closed. It ends with the process, however the process ends.
 */
export type Presence = {
  /** The server's version, such as `18.4`. */
  readonly version: string;
  /** Returns whether another process stays connected; false also if the server has ended. */
  readonly hasCompany: () => Promise<boolean>;
  readonly end: () => Promise<void>;
};

/**
 * Connects to the server and stays connected.
 *
 * @throws Error of `pg` if it does not connect within 10 s.
 */
export async function announcePresence(url: string): Promise<Presence> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "onceward embedded presence",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  // Without a listener, a crash of the server would end this process.
  let lost = false;
  client.on("error", () => {
    lost = true;
  });
  await client.connect();
  const shown = await client.query<{ server_version: string }>("show server_version");
  return {
    version: shown.rows[0]?.server_version ?? "",
    hasCompany: async () => {
      const alone = async () => lost || (await countOthers(client)) === 0;
      return !(await waitUntil(alone, SETTLE_MS));
    },
    end: () => client.end(),
  };
}

async function countOthers(client: pg.Client): Promise<number> {
  const counted = await client.query<{ others: number }>(`
    select count(*)::int as others
      from pg_stat_activity
     where backend_type = 'client backend'
       and pid <> pg_backend_pid()`);
  return counted.rows[0]?.others ?? 0;
}
