import { expect, onTestFinished, test } from "vitest";
import { type OpenDatabase, openDatabase } from "../helpers/database/database.ts";
import { useOwnPostgres } from "../helpers/database/own-postgres.ts";
import { createWorkplace, runCommand } from "../helpers/processes/command.ts";
import { settingsFor, startServe } from "../helpers/processes/serve.ts";

const postgres = useOwnPostgres();
/** Tokens are raised by at least this: server/migrations/0006_identities.sql. */
const STEP = 2n ** 42n;

interface Counted {
  readonly installation: string;
  readonly token: bigint;
  readonly tenant: number;
  readonly job: bigint;
  readonly event: bigint;
}

/** Creates a migrated database and a function that runs a command on it. */
async function createDatabase() {
  const url = await postgres.createDatabase();
  const settings = settingsFor(url);
  const workplace = await createWorkplace();
  await runCommand(["migrate"], workplace, settings);
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  return { database, settings, workplace, run: (...args: string[]) => runCommand(args, workplace, settings) };
}

/** Returns the installation's id and the last value of each sequence. */
async function readCounted(database: OpenDatabase): Promise<Counted> {
  const [row] = await database.query<Record<keyof Counted, string>>(
    `select (select id from installation) as installation,
            (select last_value from fencing_tokens) as token, (select last_value from tenants_id_seq) as tenant,
            (select last_value from record_jobs_id_seq) as job, (select last_value from audit_events_id_seq) as event`,
  );
  if (row === undefined) throw new Error("the sequences say nothing");
  const { installation, token, tenant, job, event } = row;
  return {
    installation,
    token: BigInt(token),
    tenant: Number(tenant),
    job: BigInt(job),
    event: BigInt(event),
  };
}

test("after-restore gives the installation a new id, raises every sequence and is audited", async () => {
  const { database, run } = await createDatabase();
  await database.query("insert into tenants (name) values ('acme')");
  const before = await readCounted(database);
  const { exit, stdout, stderr } = await run("after-restore");
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  const after = await readCounted(database);
  expect(after.installation).not.toBe(before.installation);
  expect(after.token).toBeGreaterThan(before.token + STEP);
  expect(stdout).toContain(` above ${after.token}.`);
  expect(after.tenant).toBeGreaterThanOrEqual(before.tenant + 100_000);
  expect(after.job).toBeGreaterThanOrEqual(before.job + 1_000_000_000n);
  expect(after.event).toBeGreaterThanOrEqual(before.event + 1_000_000_000n);
  expect(await database.query("select actor, action, target, outcome from audit_events")).toEqual([
    { actor: "onceward-server", action: "AfterRestore", target: "installation", outcome: "DONE" },
  ]);
});

test("after-restore raises tokens and tenants' ids above rows that are ahead of the sequences, and above --above", async () => {
  const { database, run } = await createDatabase();
  const inRows = 2n ** 55n;
  // More rows than a page; the highest token is in neither the first nor the last page.
  await database.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry, accepts_ambiguous,
       lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, lease_expires_at,
       expires_at, sweep_at, claim_id, owner)
     select 700000, 'charges', lpad(n::text, 5, '0'), case n when 10500 then $1::bigint else n end, 1, 1, false, false,
            1000, 60, 60, 60, now(), now(), now(), now(), now(), '', ''
       from generate_series(1, 20500) n`,
    [inRows],
  );
  expect((await run("after-restore")).exit).toBe(0);
  const after = await readCounted(database);
  expect(after.token).toBeGreaterThan(inRows + STEP);
  expect(after.tenant).toBeGreaterThan(700_000);
  const asked = 2n ** 58n;
  expect((await run("after-restore", "--above", String(asked))).exit).toBe(0);
  expect((await readCounted(database)).token).toBeGreaterThan(asked + STEP);
});

test("after-restore is refused while a replica serves, unless forced", async () => {
  const { database, settings, workplace, run } = await createDatabase();
  await startServe(workplace, settings);
  const before = await readCounted(database);
  const refused = await run("after-restore");
  expect(refused).toMatchObject({ exit: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^1 replicas have reported .* --force/);
  expect((await readCounted(database)).installation).toBe(before.installation);
  expect(await run("after-restore", "--force")).toMatchObject({ exit: 0, stderr: "" });
  expect((await readCounted(database)).installation).not.toBe(before.installation);
});

test("a malformed token is refused", async () => {
  const { run } = await createDatabase();
  expect(await run("after-restore", "--above", "-1")).toMatchObject({ exit: 1 });
  const { stderr } = await run("after-restore", "--above", "1e3");
  expect(stderr).toMatch(/^--above must be a fencing token/);
});
