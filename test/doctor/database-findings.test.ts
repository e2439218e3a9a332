import { beforeAll, expect, onTestFinished, test } from "vitest";
import { pepperMark } from "../../server/src/access/pepper.ts";
import { runMigrations } from "../../server/src/commands/schema.ts";
import { migrate } from "../../server/src/database/migrate.ts";
import { NEWEST_MINORS } from "../../server/src/doctor/checks/settings.ts";
import { openConnection } from "../support/database/connections.ts";
import { type OpenDatabase, openDatabase } from "../support/database/database.ts";
import { NAMED_COCKROACH, namedVersion } from "../support/database/other-engine.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { createServiceRole } from "../support/database/service-role.ts";
import { diagnoseDatabase, idsOf } from "../support/doctor/diagnosis.ts";
import { encryptionKeys } from "../support/servers/encryption.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

/** With the settings of initdb: doctor finds nothing wrong with them. */
const postgres = useOwnPostgres({});
let control: OpenDatabase;

beforeAll(() => {
  control = openDatabase(postgres.server().url("postgres"));
  return () => control.close();
});

async function createMigrated(): Promise<OpenDatabase> {
  const url = await postgres.createDatabase();
  await migrate(url, () => {});
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  return database;
}

/** Creates a database that is not UTF-8; returns its URL. */
async function createLatin1(): Promise<string> {
  const url = new URL(await postgres.createDatabase());
  url.pathname = `${url.pathname}_latin1`;
  await control.query(
    `create database ${url.pathname.slice(1)} encoding 'LATIN1' locale 'C' template template0`,
  );
  return url.href;
}

async function set(database: OpenDatabase, setting: string): Promise<void> {
  await database.query(`alter database ${nameOf(database)} set ${setting}`);
}

function nameOf({ url }: OpenDatabase): string {
  return new URL(url).pathname.slice(1);
}

const PUBLIC_FIRST = "search_path = public, pg_catalog";
const NEWEST = 180_000 + (NEWEST_MINORS[18] ?? 0);

/** Makes Postgres name a version as its own to new connections. */
async function nameVersion(database: OpenDatabase, num: number): Promise<void> {
  await database.query(namedVersion(num));
  await set(database, PUBLIC_FIRST);
}

/** Sets settings of the whole server until the test ends. */
async function setServer(...settings: readonly string[]): Promise<void> {
  const apply = async (changes: readonly string[]) => {
    for (const change of changes) await control.query(`alter system ${change}`);
    await control.query("select pg_reload_conf()");
  };
  onTestFinished(() => apply(settings.map((setting) => `reset ${setting.split(" ")[0]}`)));
  await apply(settings.map((setting) => `set ${setting}`));
  // A reload reaches each process by a signal.
  for (const setting of settings) {
    const [name = "", , value] = setting.split(" ");
    await expect.poll(async () => (await control.query(`show ${name}`))[0]).toEqual({ [name]: value });
  }
}

test("a healthy database has no finding but those of its owner's role and of a missing standby", async () => {
  const database = await createMigrated();
  await nameVersion(database, NEWEST);
  const diagnosis = await diagnoseDatabase(database.url);
  expect(diagnosis.findings.map(({ id, severity }) => [id, severity])).toEqual([
    ["audit_changeable", "info"],
    ["standby_missing", "info"],
  ]);
  expect(diagnosis.passed).toEqual([
    "engine",
    ...[
      "schema",
      "postgres_settings",
      "writes",
      "pepper",
      "pooler",
      "connections",
      "exports",
      "encryption_keys",
      "citus",
      "clocks",
      "redis",
      "tables",
      "backlog",
    ],
  ]);
  expect(diagnosis.skipped).toEqual([]);
});

test.each([
  ["synchronous_commit_off", "synchronous_commit = off"],
  ["database_read_only", "default_transaction_read_only = on"],
  ["deadlock_timeout_short", "deadlock_timeout = '100ms'"],
])("%s: %s", async (id, setting) => {
  const database = await createMigrated();
  await set(database, setting);
  expect(idsOf(await diagnoseDatabase(database.url))).toEqual([id]);
});

test("settings on which answers depend, where the service's sessions do not send theirs", async () => {
  const database = await createMigrated();
  await set(database, "default_transaction_isolation = serializable");
  await set(database, "extra_float_digits = 0");
  await set(database, "transform_null_equals = on");
  const { findings } = await diagnoseDatabase(database.url, { ONCEWARD_PGBOUNCER: "true" });
  expect(findings.find(({ id }) => id === "session_settings_missing")?.summary).toMatch(
    / extra_float_digits, transform_null_equals\.$/,
  );
  expect(findings.map(({ id }) => id)).toContain("isolation_not_read_committed");
});

test.each([
  ["fsync_off", "fsync = off"],
  ["full_page_writes_off", "full_page_writes = off"],
  ["autovacuum_off", "autovacuum = off"],
])("%s: %s", async (id, setting) => {
  const database = await createMigrated();
  await setServer(setting);
  expect(idsOf(await diagnoseDatabase(database.url))).toEqual([id]);
});

test.each([
  ["postgres_minor_outdated", "info", NEWEST - 1],
  ["postgres_version_unsupported", "error", 140_000],
] as const)("%s", async (id, severity, version) => {
  const database = await createMigrated();
  await nameVersion(database, version);
  expect((await diagnoseDatabase(database.url)).findings).toContainEqual(
    expect.objectContaining({ id, severity }),
  );
});

test("a database that calls itself CockroachDB", async () => {
  const database = await createMigrated();
  await database.query(NAMED_COCKROACH);
  await set(database, PUBLIC_FIRST);
  const { findings } = await diagnoseDatabase(database.url);
  expect(findings[0]).toMatchObject({
    id: "engine_unsupported",
    severity: "error",
    summary: expect.stringMatching(
      /^The database is CockroachDB, which is not supported\. now\(\) is the clock of the node/,
    ),
  });
});

test("a database in another encoding than UTF-8", async () => {
  const url = await createLatin1();
  expect((await diagnoseDatabase(url)).findings[0]).toMatchObject({
    id: "engine_unsupported",
    summary: expect.stringContaining("in the encoding LATIN1"),
  });
  await expect(
    runMigrations({ DATABASE_URL: url, DATABASE_DIRECT_URL: undefined }, () => {}),
  ).rejects.toThrow("in the encoding LATIN1, which is not supported");
});

test("a schema that lacks a migration, and one that has a newer one", async () => {
  const behind = await createMigrated();
  await behind.query("delete from schema_migrations where name = '0001_initial'");
  expect((await diagnoseDatabase(behind.url)).findings[0]).toMatchObject({
    id: "schema_behind",
    severity: "error",
    summary: expect.stringContaining("0001_initial"),
  });
  const ahead = await createMigrated();
  await ahead.query("insert into schema_migrations (name, run_on) values ('9999_later', now())");
  expect(idsOf(await diagnoseDatabase(ahead.url))).toEqual(["schema_ahead"]);
});

test("replicas that may open more connections than Postgres accepts or has left for one", async () => {
  const database = await createMigrated();
  await database.query(
    "insert into replicas (id, version) select gen_random_uuid(), '1' from generate_series(1, 2)",
  );
  // 100 connections, of which 3 are reserved.
  const exceeded = await diagnoseDatabase(database.url, { ONCEWARD_POOL_SIZE: "60" });
  expect(idsOf(exceeded)).toEqual(["max_connections_exceeded"]);
  expect(exceeded.findings[0]?.summary).toMatch(
    /2 × 63 = 126 connections; max_connections leaves \d\d beside \d/,
  );
  expect(idsOf(await diagnoseDatabase(database.url, { ONCEWARD_POOL_SIZE: "40" }))).toEqual([
    "max_connections_tight",
  ]);
  expect(idsOf(await diagnoseDatabase(database.url, { ONCEWARD_POOL_SIZE: "12" }))).toEqual([]);
  await database.query(`alter database ${nameOf(database)} connection limit 20`);
  const ofDatabase = await diagnoseDatabase(database.url, { ONCEWARD_POOL_SIZE: "12" });
  expect(ofDatabase.findings[0]).toMatchObject({
    id: "max_connections_exceeded",
    summary: "Replicas may open 2 × 15 = 30 connections; the limit of the database is 20.",
  });
});

test("a machine whose clock differs from the database's", async () => {
  const database = await createMigrated();
  const now = Date.now;
  onTestFinished(() => {
    Date.now = now;
  });
  // The clock of this process; the database's stays.
  Date.now = () => now() - 7000;
  const { findings } = await diagnoseDatabase(database.url);
  expect(findings.map(({ id }) => id)).toContain("clock_skewed");
  const { summary } = findings.find(({ id }) => id === "clock_skewed") ?? {};
  expect(summary).toMatch(/^This machine's clock is (6\.\d|7\.0) s behind the database's\.$/);
});

test("a record that has been due for the sweep for long, and a record job", async () => {
  const database = await createMigrated();
  await database.query("insert into tenants (name) values ('acme')");
  await insertRecords(database, "50 seconds");
  await insertJob(database, "14 minutes");
  expect(idsOf(await diagnoseDatabase(database.url))).toEqual([]);
  await insertRecords(database, "2 minutes");
  await insertJob(database, "16 minutes");
  const late = await diagnoseDatabase(database.url);
  expect(idsOf(late)).toEqual(["sweep_behind", "record_job_late"]);
  expect(late.findings.map(({ summary }) => summary).join(" ")).toMatch(
    /The sweep is 12\d s behind.* Record job 2 \(FORGET, tenant number 1\) has been due for 16 min/,
  );
  expect(idsOf(await diagnoseDatabase(database.url, { ONCEWARD_SWEEP_INTERVAL: "1h" }))).toEqual([
    "record_job_late",
  ]);
});

/** Inserts records of tenant 1 that are due for the sweep since then; negative: that will be. */
function insertRecords(database: OpenDatabase, overdue: string, count = 1): Promise<unknown> {
  return database.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
       accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
       claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
     select 1, 'charges', $1::text || n, 1, 1, 1, false, false, 1000, 60, 60, 60, now(), now(), now(), at, at, '', ''
       from (select now() - $1::text::interval as at) due, generate_series(1, $2::int) n`,
    [overdue, count],
  );
}

function insertJob(database: OpenDatabase, age: string): Promise<unknown> {
  return database.query(
    `insert into record_jobs (tenant_id, namespace, kind, terms, starts_at)
     values (1, 'charges', 'FORGET', '{}', now() - $1::interval)`,
    [age],
  );
}

test("updates that touch every index, and dead rows that vacuum does not remove", async () => {
  const database = await createMigrated();
  await database.query("alter table records set (autovacuum_enabled = false)");
  await insertRecords(database, "-1 hour", 25_000);
  await database.query("update records set sweep_at = sweep_at + interval '1 second'");
  // A session reports its counts when it ends.
  await database.close();
  const found = async () => idsOf(await diagnoseDatabase(database.url));
  await expect.poll(found, { timeout: 30_000, interval: 500 }).toEqual(["hot_share_low", "dead_rows_many"]);
});

test("deploy's role has every privilege but changing the audit; revoked ones are named", async () => {
  const database = await createMigrated();
  await nameVersion(database, NEWEST);
  const { role, url } = await createServiceRole(database);
  expect((await diagnoseDatabase(url)).findings.map(({ id }) => id)).toEqual(["standby_missing"]);
  const tables = await database.query<{ name: string }>(
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  );
  expect(tables.length).toBeGreaterThan(8);
  for (const { name } of tables) {
    await database.query(`revoke select on ${name} from ${role}`);
    const { findings } = await diagnoseDatabase(url);
    expect(findings.find(({ id }) => id === "privilege_missing")?.summary).toBe(
      `The role ${role} lacks select on ${name}.`,
    );
    await database.query(`grant select on ${name} to ${role}`);
  }
  await database.query(`revoke execute on function renew_installation from public`);
  await database.query(`revoke delete on records from ${role}`);
  expect((await diagnoseDatabase(url)).findings[0]?.summary).toBe(
    `The role ${role} lacks delete on records, execute on function renew_installation.`,
  );
});

test("a check that fails is a finding, and hides no other", async () => {
  const database = await createMigrated();
  await set(database, "synchronous_commit = off");
  await database.query("alter table records rename column sweep_at to sweep_when");
  const { findings, passed } = await diagnoseDatabase(database.url);
  expect(findings.slice(0, 2)).toMatchObject([
    { id: "synchronous_commit_off" },
    {
      id: "check_failed",
      summary: expect.stringMatching(/^The check backlog failed: .*sweep_at.* does not exist/),
    },
  ]);
  expect(passed).toContain("clocks");
});

test("a statement that waits for a lock ends in time, and the other checks are made", async () => {
  const database = await createMigrated();
  const connection = await openConnection(database);
  await connection.query("begin; lock table record_jobs");
  const { findings, passed } = await diagnoseDatabase(database.url);
  expect(findings[0]).toMatchObject({
    id: "check_failed",
    summary: expect.stringMatching(/^The check backlog failed: .*lock timeout/),
  });
  expect(passed).toContain("tables");
});

test("a database that is unreachable is one finding, and its checks are skipped", async () => {
  const { findings, passed, skipped } = await diagnoseDatabase("postgresql://nobody@127.0.0.1:1/none");
  expect(findings).toMatchObject([
    { id: "postgres_unreachable", severity: "error", summary: expect.stringContaining("ECONNREFUSED") },
  ]);
  expect(passed).toEqual(["redis"]);
  expect(skipped).toContain("schema");
});

test("a missing encryption key is found: the first one, and the last pass's", async () => {
  const database = await createMigrated();
  await database.query("insert into encryption_pass (key_id, records_unreadable) values (2, 0)");
  for (const keys of [{}, encryptionKeys(1)]) {
    const { findings } = await diagnoseDatabase(database.url, keys);
    expect(findings[0]).toMatchObject({ id: "records_unreadable", severity: "error" });
    expect(findings[0]?.summary).toContain("lacks key 2,");
  }
  expect(idsOf(await diagnoseDatabase(database.url, encryptionKeys(2)))).toEqual([]);
  await database.query("update encryption_pass set records_unreadable = 3");
  const { findings } = await diagnoseDatabase(database.url, encryptionKeys(2));
  expect(findings[0]).toMatchObject({ id: "records_unreadable" });
  expect(findings[0]?.summary).toMatch(/could not decrypt 3 of them/);
});

test("another installation's pepper is found, and keys that need the second are counted", async () => {
  const database = await createMigrated();
  const { id } = await createTenant(database);
  const other = "another pepper that only this test has, 0123";
  await database.query("insert into pepper_check (mark) values ($1)", [pepperMark(other)]);
  expect(idsOf(await diagnoseDatabase(database.url))).toEqual(["pepper_wrong"]);
  const both = await diagnoseDatabase(database.url, { ONCEWARD_API_KEY_SECOND_PEPPER: other });
  expect(idsOf(both)).toEqual(["second_pepper"]);
  expect(both.findings.find((finding) => finding.id === "second_pepper")?.summary).toMatch(/^1 API keys /);
  await database.query("update api_keys set pepper_mark = $2 where tenant_id = $1", [
    id,
    pepperMark(TEST_PEPPER),
  ]);
  const stored = await diagnoseDatabase(database.url, { ONCEWARD_API_KEY_SECOND_PEPPER: other });
  expect(stored.findings.find((finding) => finding.id === "second_pepper")?.summary).toMatch(/^0 API keys /);
});

test("a write that Postgres refuses is found with its SQLSTATE; an accepted one leaves nothing", async () => {
  const database = await createMigrated();
  expect(idsOf(await diagnoseDatabase(database.url))).not.toContain("writes_fail");
  expect(await database.query("select from records")).toEqual([]);
  await database.query("alter table records add constraint refuses check (tenant_id > 0)");
  const { findings } = await diagnoseDatabase(database.url);
  expect(findings.find(({ id }) => id === "writes_fail")?.summary).toContain("SQLSTATE 23514");
});
