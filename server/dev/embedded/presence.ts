import pg from "pg";
import { waitUntil } from "./wait.ts";

const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 10_000;
// A connection that was closed a moment ago is still listed until its backend has ended.
const SETTLE_MS = 1_000;

/**
 * One connection for as long as this process uses the server. It shows the others that we are here, even while our
 * pools are idle and closed, and it goes when we go, however we go.
 */
export type Presence = {
  /** As the server says it, such as `18.4`. */
  readonly version: string;
  /** Whether anybody else is connected and stays so; false also when the server is gone. */
  readonly hasCompany: () => Promise<boolean>;
  readonly end: () => Promise<void>;
};

/**
 * Connects to the server and keeps connected.
 *
 * @throws what `pg` throws when it can't be done in 10 s.
 */
export async function announcePresence(url: string): Promise<Presence> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "onceward embedded presence",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  });
  // Without a listener, a server that crashes would take this process with it.
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
