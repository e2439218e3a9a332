import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { openDatabase } from "../support/database/database.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { startStandby } from "../support/database/standby.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";

const postgres = useOwnPostgres({ wal_level: "logical" });

async function findings(url: string): Promise<readonly string[]> {
  const usual = ["audit_changeable", "postgres_minor_outdated"];
  return (await diagnoseDatabase(url)).findings.map(({ id }) => id).filter((id) => !usual.includes(id));
}

test("an asynchronous standby, a synchronous one, one that is missing, and the standby itself", async () => {
  const url = await postgres.createDatabase();
  await migrate(url, () => {});
  expect(await findings(url)).toEqual(["standby_missing"]);
  const exported = openDatabase(url);
  onTestFinished(() => exported.close());
  await exported.query("select pg_create_logical_replication_slot('onceward_history', 'pgoutput')");
  expect(await findings(url)).toEqual(["export_behind", "standby_missing"]);
  await exported.query("select pg_drop_replication_slot('onceward_history')");

  const primary = postgres.server();
  const control = new pg.Pool({ connectionString: primary.url("postgres"), max: 2 });
  onTestFinished(() => control.end());
  const standby = await startStandby({
    control,
    primary,
    dataDir: postgres.dataDir(),
    copyDir: join(postgres.dataDir(), "..", "standby"),
    settings: {},
    standing: "asynchronous",
  });
  onTestFinished(() => standby.stop());
  expect(await findings(url)).toEqual(["standby_asynchronous"]);

  const demand = async (name: string) => {
    await control.query(`alter system set synchronous_standby_names = '${name}'`);
    await control.query("select pg_reload_conf()");
  };
  // Commits would wait for a standby that is missing.
  onTestFinished(() => demand(""));
  await demand("chaos_standby");
  await expect.poll(() => findings(url)).toEqual([]);
  await control.query(
    `alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = remote_write`,
  );
  expect(await findings(url)).toEqual(["standby_asynchronous"]);
  await demand("another_standby");
  await expect.poll(() => findings(url)).toEqual(["synchronous_standby_missing"]);

  const ofStandby = new URL(standby.url("x"));
  ofStandby.pathname = new URL(url).pathname;
  expect(await findings(ofStandby.href)).toContain("database_read_only");
});
