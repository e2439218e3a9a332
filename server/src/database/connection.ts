import pg from "pg";
import { TYPES } from "./pool.ts";

/** Maximum wait for a connection. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Runs `work` on a connection of its own, outside all pools, and closes it. */
export async function withConnection<Answer>(
  config: pg.ClientConfig,
  work: (client: pg.Client) => Promise<Answer>,
): Promise<Answer> {
  const client = new pg.Client({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, types: TYPES, ...config });
  // A broken connection fails its query. An error event without a listener would end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Returns the number of the process of Postgres that answers. */
export async function readBackend(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? 0;
}
