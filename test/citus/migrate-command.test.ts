import { afterEach, beforeEach, expect, test } from "vitest";
import { WORKER_SETTINGS } from "../../server/src/database/pool.ts";
import { addNodes, addressOf } from "../support/database/citus.ts";
import { createEmptyNodes } from "../support/database/database.ts";
import { runStatements } from "../support/database/statement-runner.ts";
import { createWorkplace, type Ended, runCommand } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";

type Nodes = Awaited<ReturnType<typeof createEmptyNodes>>;

let nodes: Nodes;
beforeEach(async () => {
  nodes = await createEmptyNodes();
});
afterEach(() => nodes.drop());

async function migrateCitus(url = nodes.url): Promise<Ended> {
  return await runCommand(["migrate", "--citus"], await createWorkplace(), settingsFor(url));
}

/** Returns the tables of the service in the coordinator's database. */
function tables(): Promise<readonly object[]> {
  return nodes.query("select from pg_class where relname in ('records', 'tenants')");
}

async function createExtension(...urls: readonly string[]): Promise<void> {
  for (const url of urls) await runStatements(url, "create extension citus");
}

async function addWorkers(...workerUrls: readonly string[]): Promise<void> {
  await addNodes({ coordinatorUrl: nodes.url, workerUrls });
}

function refused(reason: RegExp) {
  return { exit: 1, stdout: "", stderr: expect.stringMatching(reason) };
}

const [firstWorker, secondWorker] = [0, 1].map((i) => () => nodes.workerUrls[i] as string) as [
  () => string,
  () => string,
];

test("nothing is created until the database is that of a coordinator with its workers", async () => {
  expect(await migrateCitus()).toEqual(refused(/^The database has no extension citus\. Run on the /));
  await createExtension(nodes.url, ...nodes.workerUrls);
  expect(await migrateCitus()).toEqual(refused(/^The workers do not know their coordinator\. Run: select /));
  await nodes.query(`select citus_set_coordinator_host(${addressOf(nodes.url)})`);
  expect(await migrateCitus()).toEqual(refused(/^Citus has no worker\. Run: select citus_add_node/));
  expect(await tables()).toEqual([]);

  await addWorkers(firstWorker());
  expect(await migrateCitus(firstWorker())).toEqual(
    refused(/^This is the database of a worker\. Give the URL/),
  );
  // A worker with tables of its own could not get those of its coordinator.
  expect(await migrateCitus()).toMatchObject({ exit: 0, stderr: "" });
});

test("the records are distributed once, and a repeat gives a new worker its settings", async () => {
  await createExtension(nodes.url, ...nodes.workerUrls);
  await addWorkers(firstWorker());
  const first = await migrateCitus();
  expect(first).toMatchObject({ exit: 0, stderr: "" });
  expect(first.stdout).toMatch(
    /^ran 0001_initial\n(ran .*\n)*The schema is current\.\nDistributed the records by key: 4 shards on 1 workers\.\n/,
  );

  await addWorkers(secondWorker());
  expect(await migrateCitus()).toEqual({
    exit: 0,
    stdout:
      "The schema is current.\nThe records are already distributed by key.\n" +
      "The databases of 2 workers have the settings of the service's sessions.\n",
    stderr: "",
  });
  const settings = Object.entries(WORKER_SETTINGS).map(([name, value]) => `${name}=${value}`);
  const [stored] = await nodes.query<{ workers: readonly string[] }>(
    `select array_agg(result order by nodeid) as workers
       from pg_dist_node
       join run_command_on_workers($$
              select array_to_string(setconfig, ' ') from pg_db_role_setting
               where setdatabase = (select oid from pg_database where datname = current_database())$$) using (nodename, nodeport)`,
  );
  expect(stored?.workers).toEqual([settings.join(" "), settings.join(" ")]);
});

test("records distributed by another column, or referenced by a foreign key, are left alone", async () => {
  await createExtension(nodes.url, ...nodes.workerUrls);
  await addWorkers(firstWorker());
  const workplace = await createWorkplace();
  expect(await runCommand(["migrate"], workplace, settingsFor(nodes.url))).toMatchObject({ exit: 0 });

  await nodes.query("create table orders (id int primary key)");
  await nodes.query("alter table records add constraint of_order foreign key (attempt) references orders");
  const inTheWay = /^Foreign keys from or to the records must be dropped first: of_order\.\n$/;
  expect((await migrateCitus()).stderr).toMatch(inTheWay);
  await nodes.query("alter table records drop constraint of_order");

  await nodes.query("select create_distributed_table('records', 'tenant_id', shard_count => 2)");
  const otherColumn =
    /^The records are distributed by tenant_id\. Run: onceward-server migrate --undistribute\n$/;
  expect(await migrateCitus()).toMatchObject({ exit: 1, stderr: expect.stringMatching(otherColumn) });
  expect(
    await nodes.query("select shardid from pg_dist_shard where logicalrelid = 'records'::regclass"),
  ).toHaveLength(2);
});
