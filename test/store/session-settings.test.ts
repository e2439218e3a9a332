import { beforeAll, expect, onTestFinished, test } from "vitest";
import { openPool } from "../../server/src/database/pool.ts";
import { createFindTenants } from "../../server/src/database/tenants/tenants.ts";
import { timestampMs } from "../../server/src/domain/violations.ts";
import { runBatch } from "../support/calls/batches.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { endLeases } from "../support/calls/records.ts";
import { grant, success } from "../support/calls/verbs.ts";
import { openDatabase, openNodes } from "../support/database/database.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

/** Each is unlike Postgres' default, and may be set for a database or a role. */
const HOSTILE_SETTINGS = {
  array_nulls: "off",
  backslash_quote: "off",
  bytea_output: "escape",
  DateStyle: "SQL, DMY",
  default_transaction_isolation: "serializable",
  escape_string_warning: "off",
  extra_float_digits: "-15",
  IntervalStyle: "sql_standard",
  lc_monetary: "C",
  lc_numeric: "C",
  quote_all_identifiers: "on",
  standard_conforming_strings: "off",
  TimeZone: "Asia/Kathmandu",
  transform_null_equals: "on",
  xmlbinary: "hex",
  xmloption: "document",
};
const COUNT = 20;

const database = useDatabase();
let tenant: TestTenant;

beforeAll(async () => {
  tenant = await createTenant(database);
  for (const node of openNodes(database)) {
    const [{ name } = { name: "" }] = await node.query<{ name: string }>("select current_database() as name");
    const changes = Object.entries(HOSTILE_SETTINGS).map(
      ([setting, value]) =>
        `alter database "${name}" set ${setting} = ${value
          .split(", ")
          .map((part) => `'${part}'`)
          .join(", ")};`,
    );
    await node.query(`do $$ begin perform 1 from pg_extension where extname = 'citus';
      if found then set local citus.enable_ddl_propagation = off; end if; ${changes.join(" ")} end $$`);
    await node.close();
  }
});

interface Stored {
  readonly key: string;
  readonly token: string;
  readonly first_us: string;
  readonly expires_us: string;
}

/** Reads rows as Postgres writes whole numbers, which no setting changes. */
async function readStored(): Promise<ReadonlyMap<string, Stored>> {
  const rows = await database.query<Stored>(
    `select key, fencing_token::text as token,
            (extract(epoch from first_claimed_at) * 1000000)::bigint::text as first_us,
            (extract(epoch from expires_at) * 1000000)::bigint::text as expires_us
       from records where tenant_id = $1`,
    [tenant.id],
  );
  return new Map(rows.map((row) => [row.key, row]));
}

async function connect(env: Readonly<Record<string, string>>): Promise<IdempotencyClient> {
  const server = await startServerOfTest(database.url, env);
  return connectClient(server, tenant.apiKey);
}

test.each([
  ["on connections of its own", {}],
  ["through PgBouncer, where sessions have them", { ONCEWARD_PGBOUNCER: "true" }],
])("no setting of a database changes a token, a time or a byte: %s", async (way, env) => {
  const client = await connect(env);
  const namespace = "charges";
  const keys = (kind: string) => Array.from({ length: COUNT }, (_, n) => `${way} ${kind} \\'${n}`);
  const tokens = new Map<string, bigint>();
  for (const key of [...keys("single"), ...keys("taken over")]) {
    tokens.set(key, (await grant(client, { namespace, key })).fencingToken);
  }
  const claims = await runBatch(
    client,
    keys("batch").map((key) => ({ case: "claim", value: { namespace, key } })),
  );
  for (const [n, key] of keys("batch").entries()) {
    const claim = claims[n];
    if (claim?.case !== "claim" || claim.value.outcome.case !== "claimed")
      throw new Error(`not granted: ${claim?.case}`);
    tokens.set(key, claim.value.outcome.value.fencingToken);
  }
  // Sessions from before have other settings than Citus' new ones on workers.
  const fresh = openDatabase(database.url);
  onTestFinished(() => fresh.close());
  for (const key of keys("taken over")) await endLeases(fresh, tenant, key);
  for (const key of keys("taken over")) {
    const { fencingToken, attempt } = await grant(client, { namespace, key });
    expect(attempt).toBe(2);
    tokens.set(key, fencingToken);
  }
  const stored = await readStored();
  for (const [key, token] of tokens) expect([key, stored.get(key)?.token]).toEqual([key, String(token)]);

  const payload = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  for (const [key, fencingToken] of tokens) {
    await client.complete({ namespace, key, fencingToken, result: { ...success(""), payload } });
  }
  const completed = await readStored();
  for (const key of tokens.keys()) {
    const { record } = await client.lookup({ namespace, key });
    if (record?.firstClaimedAt === undefined || record.expiresAt === undefined) throw new Error("no record");
    const us = [record.firstClaimedAt, record.expiresAt].map((at) =>
      String(Math.round(timestampMs(at) * 1000)),
    );
    expect(us).toEqual([completed.get(key)?.first_us, completed.get(key)?.expires_us]);
    const replay = await client.claim({ namespace, key });
    if (replay.outcome.case !== "completed") throw new Error(`answered ${replay.outcome.case}`);
    expect(replay.outcome.value.result?.payload).toEqual(payload);
  }
});

test("the history of a policy is read to the microsecond", async () => {
  await database.query(
    `update tenants set retention_before_s = 60, retention_lengthened_at = '2026-03-04 05:06:07.123456+00',
            late_keys_refused_since = '2026-04-03 05:06:07.654321+00' where id = $1`,
    [tenant.id],
  );
  const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: true });
  onTestFinished(() => pool.close());
  const found = (await createFindTenants(pool)([tenant.id])).get(tenant.id);
  const { lengthenings, refusedSinceMs } = found?.policy ?? {};
  expect([lengthenings, refusedSinceMs]).toEqual([
    [{ atMs: Date.UTC(2026, 2, 4, 5, 6, 7, 123) + 0.456, beforeS: 60 }],
    Date.UTC(2026, 3, 3, 5, 6, 7, 654) + 0.321,
  ]);
});
