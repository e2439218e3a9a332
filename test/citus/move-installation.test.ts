import { afterEach, beforeEach, expect, onTestFailed, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { startLoad } from "../support/calls/steady-load.ts";
import { addNodes, copyAlone } from "../support/database/citus.ts";
import { createEmptyNodes } from "../support/database/database.ts";
import { runStatements } from "../support/database/statement-runner.ts";
import { createWorkplace, runCommand, startCommand } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";

/** Enough that the copy takes a while. */
const RECORDS = 20_000;
/** The log level of calls that fail by a defect of the service. */
const DEFECT = 50;

let nodes: Awaited<ReturnType<typeof createEmptyNodes>>;
let tenant: TestTenant;

/** A plain Postgres with records. */
beforeEach(async () => {
  nodes = await createEmptyNodes();
  await migrate(nodes.url, () => {});
  tenant = await createTenant(nodes);
  await nodes.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
       accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
       claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
     select $1, 'old', 'order-' || n, n, 1, 1, true, false, 3600000, 3600, 60, 60, now(), now(),
            now() + interval '1 hour', now() + interval '2 hours', now() + interval '2 hours', '', ''
       from generate_series(1, $2::int) n`,
    [tenant.id, RECORDS],
  );
});
afterEach(() => nodes.drop());

async function becomeCoordinator(): Promise<void> {
  for (const url of [nodes.url, ...nodes.workerUrls]) await runStatements(url, "create extension citus");
  await addNodes({ coordinatorUrl: nodes.url, workerUrls: nodes.workerUrls });
}

function distribute() {
  return copyAlone(nodes.url, async () =>
    runCommand(["migrate", "--citus"], await createWorkplace(), settingsFor(nodes.url)),
  );
}

async function distributedRecords() {
  return (
    await nodes.query<{ shards: number; old: number }>(
      `select (select count(*)::int from pg_dist_shard where logicalrelid = 'records'::regclass) as shards,
              (select count(*)::int from records where namespace = 'old') as old`,
    )
  )[0];
}

/** Returns the sessions that copy the records to the workers. */
function copying() {
  return nodes.query<{ pid: number }>(
    `select pid from pg_stat_activity
      where datname = current_database() and query like '%create_distributed_table_concurrently%' and pid <> pg_backend_pid()`,
  );
}

/** A replica that can be replaced while clients call it. */
async function startReplica() {
  const started: TestServer[] = [];
  let current: IdempotencyClient;
  async function replace(): Promise<void> {
    const server = await startTestServer(nodes.url);
    current = connectClient(server, tenant.apiKey);
    started.push(server);
    onTestFailed(() => {
      process.stderr.write(`${JSON.stringify(server.log.filter(({ level }) => level === DEFECT))}\n`);
    });
    await started.at(-2)?.stop();
  }
  await replace();
  onTestFinished(() => started.at(-1)?.stop());
  const client = {
    claim: (...call: Parameters<IdempotencyClient["claim"]>) => current.claim(...call),
    complete: (...call: Parameters<IdempotencyClient["complete"]>) => current.complete(...call),
  } as IdempotencyClient;
  return { client, replace };
}

test("a full installation moves to Citus under load: nothing lost or twice, tokens rise", async () => {
  const replicas = [await startReplica(), await startReplica()];
  const restart = async () => {
    for (const { replace } of replicas) await replace();
  };
  const load = startLoad(
    replicas.flatMap(({ client }) => [client, client, client, client]),
    "charges",
  );
  await load.more(200);
  await becomeCoordinator();
  await restart();
  await load.more(200);
  const before = load.acknowledged.size;
  expect(await distribute()).toMatchObject({ exit: 0, stderr: "" });
  expect(load.acknowledged.size).toBeGreaterThan(before);
  await restart();
  await load.more(200);
  await load.stop();

  expect(await distributedRecords()).toEqual({ shards: 8, old: RECORDS });
  const [stored] = await nodes.query<{ keys: number; attempts: number; last: string }>(
    `select count(*)::int as keys, sum(attempt)::int as attempts,
            max(fencing_token)::text as last
       from records where namespace = 'charges'`,
  );
  const { size } = load.acknowledged;
  expect(stored).toMatchObject({ keys: size, attempts: size });
  const { client } = replicas[0] as (typeof replicas)[number];
  const results = await Promise.all(
    Array.from(load.acknowledged.keys(), async (key) => {
      const { outcome } = await client.claim({ namespace: "charges", key });
      if (outcome.case !== "completed") throw new Error(`${key} was answered ${outcome.case}`);
      return [key, Buffer.from(outcome.value.result?.payload ?? []).toString()] as const;
    }),
  );
  expect(new Map(results)).toEqual(load.acknowledged);
  expect((await client.claim({ namespace: "old", key: "order-7" })).outcome.case).toBe("inProgress");
  const next = granted(await client.claim({ namespace: "charges", key: "new" }));
  expect(next.fencingToken).toBeGreaterThan(BigInt(stored?.last ?? 0));
});

test("a move that was cut off half-way is repeated, and nothing is lost", async () => {
  await becomeCoordinator();
  await copyAlone(nodes.url, async () => {
    const command = startCommand(["migrate", "--citus"], await createWorkplace(), settingsFor(nodes.url));
    await expect.poll(copying, { timeout: 30_000, interval: 10 }).not.toEqual([]);
    await nodes.query("select pg_terminate_backend($1::int)", [(await copying())[0]?.pid]);
    expect(await command.ended).toMatchObject({ exit: 1 });
  });
  const { client } = await startReplica();
  expect((await client.claim({ namespace: "old", key: "order-7" })).outcome.case).toBe("inProgress");

  const repeated = await distribute();
  expect(repeated).toMatchObject({ exit: 0, stderr: "" });
  expect(repeated.stdout).toContain("Distributed the records by key: 8 shards on 2 workers.\n");
  expect(await distributedRecords()).toEqual({ shards: 8, old: RECORDS });
});
