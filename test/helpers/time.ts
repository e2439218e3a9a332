import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { openPool } from "../../server/src/store/pool.ts";
import { sweepBatch } from "../../server/src/store/sweep-records.ts";
import type { TestDatabase } from "./database.ts";
import type { TestTenant } from "./tenants.ts";

/** Forgets a tenant's records: markers stay, and copies of what they were are not found any more. */
export async function forgetRecords(database: TestDatabase, { id }: TestTenant): Promise<void> {
  await database.query(
    `with forgotten as (update records set state = 0 where tenant_id = $1)
     update tenants set cache_generation = cache_generation + 1 where id = $1`,
    [id],
  );
}

/** How many rows a tenant has, whatever they say. */
export async function countRows(database: TestDatabase, { id }: TestTenant): Promise<number> {
  const rows = await database.query("select 1 from records where tenant_id = $1", [id]);
  return rows.length;
}

const SWEEP_ROWS = 1000;

/** Sweeps everything that is due. */
export async function sweep(database: TestDatabase): Promise<void> {
  const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
  try {
    while ((await sweepBatch(pool, SWEEP_ROWS)).due === SWEEP_ROWS);
  } finally {
    await pool.close();
  }
}

/** From one moment to another, to the microsecond. */
export function secondsBetween(from: Timestamp | undefined, to: Timestamp | undefined): number {
  if (from === undefined || to === undefined) throw new Error("a moment is missing");
  return Number(to.seconds - from.seconds) + (to.nanos - from.nanos) / 1e9;
}
