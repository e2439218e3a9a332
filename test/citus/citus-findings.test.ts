import { expect, test } from "vitest";
import { distributeRecords } from "../../server/src/citus/distribute-records.ts";
import { copyAlone } from "../support/database/citus.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";

const database = useDatabase();

async function citusFindings(): Promise<readonly string[]> {
  const { findings } = await diagnoseDatabase(database.url);
  return findings.map(({ id }) => id).filter((id) => id.startsWith("citus_"));
}

test("the nodes of a Citus with distributed records are in order", async () => {
  expect(await citusFindings()).toEqual([]);
});

test("workers without durable settings, or without a standby, are found", async () => {
  const { findings } = await diagnoseDatabase(database.url);
  const ofWorkers = findings.filter(({ summary }) => summary.startsWith("Worker ")).map(({ id }) => id);
  const ids = ["fsync_off", "full_page_writes_off", "synchronous_commit_off", "standby_missing"];
  expect(ofWorkers.sort()).toEqual([...ids, ...ids].sort());
});

test("a worker without the service's session settings is found, and fixed by distributing again", async () => {
  await database.query(
    `select run_command_on_workers(format(
       'do $here$ begin
          set local citus.enable_ddl_propagation = off;
          alter database %I reset lock_timeout;
        end $here$', current_database()))`,
  );
  const { findings } = await diagnoseDatabase(database.url);
  const summaries = findings.filter(({ id }) => id === "citus_worker_settings_missing");
  expect(summaries).toHaveLength(2);
  expect(summaries[0]?.summary).toMatch(/^The database of worker .* lacks the settings lock_timeout\.$/);
  expect((await distributeRecords(database.url))[0]).toBe("The records are already distributed by key.");
  expect(await citusFindings()).toEqual([]);
});

test.each([
  ["a missing function", "drop function onceward_hold_shard(bigint, anyelement)"],
  [
    "an undistribution that was cut off",
    "create function onceward_shards_closed() returns void language sql as ''",
  ],
])("%s is found, and a repeated distribution lets statements use single shards again", async (_, change) => {
  await database.query(change);
  expect(await citusFindings()).toEqual(["citus_functions_missing"]);
  await distributeRecords(database.url);
  expect(await citusFindings()).toEqual([]);
});

test("a worker that cannot be reached is found, and nothing is distributed meanwhile", async () => {
  const [worker] = await database.query<{ nodeid: number; nodename: string; nodeport: number }>(
    "select nodeid, nodename, nodeport from pg_dist_node where groupid <> 0 order by nodeid limit 1",
  );
  const move = (port: number) =>
    database.query("select citus_update_node($1, $2, $3)", [worker?.nodeid, worker?.nodename, port]);
  await move(1);
  expect(await citusFindings()).toEqual(["citus_node_unreachable"]);
  await expect(distributeRecords(database.url)).rejects.toThrow(
    /^Not all nodes reach each other\. Not reached: .*:1\.$/,
  );
  await move(worker?.nodeport as number);
  await database.query("select start_metadata_sync_to_all_nodes()");
  expect(await citusFindings()).toEqual([]);
});

test("records that are on the coordinator are found, and distributed while they are full", async () => {
  await database.query("select undistribute_table('records')");
  expect(await citusFindings()).toEqual(["citus_records_not_distributed"]);
  await database.query(INSERT_RECORD);
  await copyAlone(database.url, () => distributeRecords(database.url, { shards: 4 }));
  expect(await citusFindings()).toEqual([]);
  expect(await database.query("select key from records")).toEqual([{ key: "order-1" }]);
});

test("distribution is refused with the reason", async () => {
  await database.query("select undistribute_table('records')");
  await database.query(
    "alter table records add constraint of_tenant foreign key (tenant_id) references tenants (id) not valid",
  );
  await expect(distributeRecords(database.url)).rejects.toThrow(
    "Foreign keys from or to the records must be dropped first: of_tenant.",
  );
  await database.query("alter table records drop constraint of_tenant");
  await database.query("select citus_remove_node(nodename, nodeport) from pg_dist_node where groupid <> 0");
  await expect(distributeRecords(database.url)).rejects.toThrow(
    /^Citus has no worker\. Run: select citus_add_node/,
  );
  await database.query("drop extension citus cascade");
  await expect(distributeRecords(database.url)).rejects.toThrow(/^The database has no extension citus\. Run/);
});

const INSERT_RECORD = `
insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
  accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
  claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
values (1, 'charges', 'order-1', 1, 1, 1, false, false, 30000, 60, 60, 60, now(), now(), now(),
        now() + interval '1 hour', now() + interval '1 hour', '', '')`;
