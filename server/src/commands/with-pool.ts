import type { Config } from "../config/config.ts";
import { openPool, type Pool } from "../database/pool.ts";

/** Runs `work` on one connection to the database, through the pooler if there is one. */
export async function withPool<Answer>(
  { DATABASE_URL: databaseUrl, ONCEWARD_PGBOUNCER: throughPgBouncer }: Config,
  work: (pool: Pool) => Promise<Answer>,
): Promise<Answer> {
  const pool = openPool({ databaseUrl, size: 1, throughPgBouncer });
  try {
    return await work(pool);
  } finally {
    await pool.close();
  }
}
