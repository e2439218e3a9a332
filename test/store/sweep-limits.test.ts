import { expect, onTestFinished, test } from "vitest";
import { sweepBatch } from "../../server/src/records/sweep.ts";
import { openStorePool } from "../support/database/connections.ts";
import { isCitus } from "../support/database/database.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

/**
 * Inserts records that are all due at one time, and that have ended or end in an hour. Deleted at the end of
 * the test.
 */
async function insertDue(rows: number, fate: "ended" | "remembered"): Promise<void> {
  onTestFinished(async () => {
    await database.query("delete from records");
  });
  await database.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
       accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
       claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
     select 1, 'charges', 'key-' || n, 1, 1, 1, false, false, 30000, 60, 60, 60, now(), now(),
            now() - interval '1 hour', now() + $2::interval, now() - interval '1 minute', '', ''
       from generate_series(1, $1::int) n`,
    [rows, fate === "ended" ? "-1 hour" : "1 hour"],
  );
}

/** Makes each deleted row take this long, until the end of the test. */
async function slowDeletes(rowMs: number): Promise<void> {
  await database.query(
    `create function sleep_a_while() returns trigger language plpgsql as $$
     begin perform pg_sleep(${rowMs} / 1000.0); return old; end $$`,
  );
  onTestFinished(async () => {
    await database.query("drop function sleep_a_while cascade");
  });
  await database.query(
    "create trigger sleep_a_while before delete on records for each row execute function sleep_a_while()",
  );
}

async function countRecords(): Promise<number> {
  return (await database.query("select from records")).length;
}

test.each([
  ["deletes", "ended"],
  ["postpones", "remembered"],
] as const)("a batch %s at most its limit of rows that are due at one time", async (_, fate) => {
  await insertDue(5, fate);
  const pool = openStorePool(database);
  for (const due of [2, 2, 1, 0]) {
    const [deleted, kept] = fate === "ended" ? [due, 0] : [0, due];
    expect(await sweepBatch(pool, 2)).toMatchObject({ due, deleted, kept });
  }
});

test("a batch that takes longer than a claim may wait for a lock fails, and changes nothing", async () => {
  await insertDue(1, "ended");
  await slowDeletes(1000);
  await expect(sweepBatch(openStorePool(database), 10)).rejects.toMatchObject({
    reason: "DATABASE_UNAVAILABLE",
  });
  expect(await countRecords()).toBe(1);
});

test("a server whose batch takes too long sweeps in smaller batches", async () => {
  // 1,000 of them would take 4 s, and 125 take half a second. The shards of a Citus delete at once.
  await insertDue(isCitus() ? 1000 : 200, "ended");
  await slowDeletes(4);
  const server = await startServerOfTest(database.url, { ONCEWARD_SWEEP_INTERVAL: "100ms" });
  await expect.poll(countRecords, { timeout: 30_000, interval: 50 }).toBe(0);
  expect((await readMetrics(server)).get("onceward_sweep_errors_total")).toBeGreaterThan(0);
});
