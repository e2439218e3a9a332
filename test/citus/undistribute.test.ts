import { beforeAll, expect, onTestFailed, test } from "vitest";
import { distributeRecords } from "../../server/src/citus/distribute-records.ts";
import { undistributeRecords } from "../../server/src/citus/undistribute-records.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { describeError } from "../support/calls/errors.ts";
import { success } from "../support/calls/verbs.ts";
import { copyAlone } from "../support/database/citus.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServerOn } from "../support/servers/use-server.ts";

const database = useDatabase();
const servers = [useServerOn(database), useServerOn(database)];
let clients: readonly IdempotencyClient[];

beforeAll(async () => {
  const { id, apiKey } = await createTenant(database);
  clients = servers.map((server) => connectClient(server, apiKey));
  // So many that a copy takes a while.
  await database.query(FILL, [id]);
});

const FILL = `
insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry, accepts_ambiguous,
  lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, lease_expires_at,
  expires_at, sweep_at, claim_id, owner)
select $1, 'old', 'order-' || n, n, 1, 1, true, false, 3600000, 3600, 60, 60, now(), now(), now() + interval '1 hour',
       now() + interval '2 hours', now() + interval '2 hours', '', ''
  from generate_series(1, 40000) n`;

/** The log level of calls that fail by a defect of the service. */
const DEFECT = 50;

/** Refusals with which nothing was done. */
const RETRYABLE = ["DATABASE_UNAVAILABLE", "RECORD_CONTENDED"];

/** Makes a call until it is not refused for a while. */
async function insist<Reply>(call: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!RETRYABLE.includes(String(describeError(error).reason))) throw error;
    }
  }
}

/** Claims and completes new keys on both replicas, until `stop` is called. */
function startLoad() {
  const completed: string[] = [];
  let stopped = false;
  const load = async (client: IdempotencyClient, name: string) => {
    for (let round = 0; !stopped; round++) {
      const id = { namespace: "charges", key: `${name}-${round}` };
      const { outcome } = await insist(() => client.claim({ ...id, claimId: id.key }));
      if (outcome.case !== "claimed") throw new Error(`a new key is ${outcome.case}`);
      const { fencingToken } = outcome.value;
      await insist(() => client.complete({ ...id, fencingToken, result: success(id.key) }));
      completed.push(id.key);
    }
  };
  const loads = clients.flatMap((client, replica) =>
    Array.from({ length: 4 }, (_, caller) => load(client, `${replica}-${caller}`)),
  );
  return {
    completed,
    async stop() {
      stopped = true;
      await Promise.all(loads);
    },
  };
}

test("records move to the coordinator and out again under load without a lost completion", async () => {
  onTestFailed(() => {
    const defects = servers.flatMap(({ log }) => log.filter(({ level }) => level === DEFECT));
    process.stderr.write(`${JSON.stringify(defects)}\n`);
  });
  const { completed, stop } = startLoad();
  const further = (count: number) => {
    const from = completed.length;
    return expect.poll(() => completed.length).toBeGreaterThan(from + count);
  };
  await further(100);
  expect(await undistributeRecords(database.url)).toEqual(["Copied all records back to the coordinator."]);
  await further(200);
  expect(await undistributeRecords(database.url)).toEqual(["The records are on the coordinator already."]);
  await copyAlone(database.url, () => distributeRecords(database.url, { shards: 4 }));
  await further(200);
  await stop();
  const rows = await database.query<{ key: string }>(
    "select key from records where namespace = 'charges' and state = 2",
  );
  expect(rows.map(({ key }) => key).sort()).toEqual([...completed].sort());
  expect(await database.query("select count(*)::int as old from records where namespace = 'old'")).toEqual([
    { old: 40_000 },
  ]);
});
