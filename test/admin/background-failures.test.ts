import { expect, test } from "vitest";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { connectClient } from "../support/calls/clients.ts";
import { complete, ORDER } from "../support/calls/verbs.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** Tasks wait longer the more often they failed, and the machine may be busy. */
const PATIENCE = { timeout: 60_000, interval: 100 };
/** Tables that tasks need. Calls do not need them while credentials and policies are cached in memory. */
const TABLES = ["replicas", "usage_hours", "tenant_totals", "record_jobs", "insight_sample_shifts"];
const TASKS = [
  ...["heartbeat", "store_usage", "store_totals", "count_records", "record_jobs", "store_key_use"],
  "sample_keys",
];

const { database, server } = useServer({
  ONCEWARD_SWEEP_INTERVAL: "100ms",
  ONCEWARD_USAGE_FLUSH: "100ms",
});

async function breakTasks(): Promise<void> {
  for (const table of TABLES) await database.query(`alter table ${table} rename to ${table}_away`);
  await database.query(
    "create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$",
  );
  for (const change of ["delete on records", "update on api_keys"]) {
    await database.query(
      `create trigger refuse before ${change} for each statement execute function refuse()`,
    );
  }
}

async function repairTasks(): Promise<void> {
  for (const table of TABLES) await database.query(`alter table ${table}_away rename to ${table}`);
  await database.query("drop function refuse cascade");
}

/** How often the task that failed least has failed. */
async function fewestFailures(): Promise<number> {
  const metrics = await readMetrics(server);
  const failures = TASKS.map((task) => metrics.get(`onceward_background_errors_total{task="${task}"}`) ?? 0);
  return Math.min(...failures, metrics.get("onceward_sweep_errors_total") ?? 0);
}

/** Returns a number of an expression, such as `count(*)`, over rows. */
async function count(expression: string, rows: string): Promise<number> {
  const [row] = await database.query<{ count: number }>(`select ${expression}::int as count from ${rows}`);
  return row?.count ?? 0;
}

test("every background task completes once its statements succeed after failures", async () => {
  const { id, apiKey } = await createTenant(database, { quota_live_records: 1000, key_retention_s: 3600 });
  const client = connectClient(server, apiKey);
  await complete(client);
  let claims = 1;
  await breakTasks();
  const newKey = await createApiKey(database, { tenantId: id, role: "CALLER" });
  await connectClient(server, newKey).lookup(ORDER);
  await database.query(
    `insert into record_jobs_away (tenant_id, namespace, kind, terms, starts_at)
     values ($1, 'refunds', 'FORGET', '{}', now())`,
    [id],
  );
  await database.query(
    `update records set sweep_at = now(), expires_at = now() - interval '1 hour' where tenant_id = $1`,
    [id],
  );
  for (let added = 0; (await fewestFailures()) < 3; added++) {
    const claim = { ...ORDER, key: `order-${added}-again` };
    claims += await client.claim(claim).then(
      () => 1,
      () => 0,
    );
  }
  const records = await count("count(*)", "records where state <> 2");
  await repairTasks();

  for (const [expression, rows, expected] of [
    ["sum(claims)", "usage_hours", claims],
    ["count(*)", "records where state = 2", 0],
    ["count(*)", "record_jobs where finished_at is null", 0],
    ["records", "tenant_totals", records],
    ["count(*)", "tenant_totals where count_due_at > now()", 1],
    ["count(last_used_at)", `api_keys where id = '${parseApiKey(newKey)?.id}'`, 1],
    ["count(*)", "replicas where seen_at > now() - interval '5 seconds'", 1],
  ] as const)
    await expect.poll(() => count(expression, rows), PATIENCE).toBe(expected);
}, 300_000);
