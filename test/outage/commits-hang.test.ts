import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient } from "../support/calls/clients.ts";
import { describeError, errorOf, type SeenError } from "../support/calls/errors.ts";
import { openDatabase } from "../support/database/database.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const POOL_SIZE = 3;
const PATIENCE = { timeout: 60_000, interval: 100 };
const AWAY = 'onceward_degraded{reason="database_unreachable"}';

const postgres = useOwnPostgres({ fsync: "off" });

test("while commits hang, a replica says that the database is away, without more connections", {
  timeout: 180_000,
}, async () => {
  const url = await postgres.createDatabase();
  await migrate(url, () => {});
  const database = openDatabase(url);
  const { apiKey } = await createTenant(database);
  const tuning = { heartbeatMs: 200, degradedLookMs: 50 };
  const server = await startTestServer(url, { ONCEWARD_POOL_SIZE: `${POOL_SIZE}` }, tuning);
  const client = connectClient(server, apiKey);
  const setStandby = async (names: string) => {
    await database.query(`alter system set synchronous_standby_names = '${names}'`);
    await database.query("select pg_reload_conf()");
  };
  onTestFinished(async () => {
    await setStandby("");
    await server.stop();
    await database.close();
  });
  let keys = 0;
  const claim = () => client.claim({ namespace: "charges", key: `key-${keys++}` });
  const isAway = async () => (await readMetrics(server)).get(AWAY);
  const count = async (condition: string) => {
    const rows = await database.query<{ count: number }>(
      `select count(*)::int from pg_stat_activity
        where datname = current_database() and application_name = 'onceward' and ${condition}`,
    );
    return rows[0]?.count ?? 0;
  };
  await claim();

  await setStandby("lost");
  // Each caller leaves a commit that hangs, until those have all places of the pool. The checkpointer reads the setting some time
  // after the reload: until then, commits end.
  const refusal = (): Promise<SeenError> => claim().then(refusal, describeError);
  const refused = Promise.all(Array.from({ length: POOL_SIZE }, refusal));
  await expect.poll(isAway, PATIENCE).toBe(1);
  for (const { reason } of await refused) expect(reason).toBe("DATABASE_UNAVAILABLE");
  for (let call = 0; call < 2; call++) {
    const errors = await Promise.all(Array.from({ length: POOL_SIZE }, () => errorOf(claim())));
    for (const { reason } of errors) expect(reason).toBe("DATABASE_UNAVAILABLE");
    expect(await isAway()).toBe(1);
  }
  expect(await count("wait_event = 'SyncRep'")).toBeGreaterThan(0);
  // Administration has two connections, the heartbeat one.
  expect(await count("true")).toBeLessThanOrEqual(POOL_SIZE + 3);

  await setStandby("");
  await expect.poll(isAway, PATIENCE).toBe(0);
  await expect.poll(async () => (await claim()).outcome.case, PATIENCE).toBe("claimed");
});
