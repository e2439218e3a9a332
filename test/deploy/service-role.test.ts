import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient } from "../support/calls/clients.ts";
import { complete, grant } from "../support/calls/verbs.ts";
import {
  createTestDatabase,
  type OpenDatabase,
  openDatabase,
  type TestDatabase,
} from "../support/database/database.ts";
import { describeWithPrograms, runProgramWith } from "../support/deploy/programs.ts";
import { createWorkplace, runCommand } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const FILE = fileURLToPath(new URL("../../deploy/postgres/service-role.sql", import.meta.url));
const PASSWORD = "a password that only this test has";

let owner: TestDatabase;
let service: OpenDatabase;

/** Runs the file as the owner; the password is a variable, or in the file that the environment names. */
async function makeRole(variables: { readonly SERVICE_PASSWORD_FILE?: string } = {}): Promise<void> {
  const password = variables.SERVICE_PASSWORD_FILE === undefined ? ["--set", `password=${PASSWORD}`] : [];
  const args = ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", ...password, "--file", FILE, owner.url];
  expect(await runProgramWith(variables, "psql", ...args)).toEqual({ exit: 0, output: "" });
}

/** A database that the owner has migrated, and a connection as the replicas' role. */
function useServiceRole(): void {
  beforeAll(async () => {
    owner = await createTestDatabase("template0");
    await migrate(owner.url, () => {});
    await makeRole();
    const url = new URL(owner.url);
    url.username = "onceward_service";
    url.password = PASSWORD;
    service = openDatabase(url.href);
  });
  afterAll(async () => {
    await service?.close();
    await owner?.drop();
  });
}

describeWithPrograms(["psql"], "the replicas' role", () => {
  useServiceRole();

  test("serves calls and background tasks without a refused statement", async () => {
    const server = await startTestServer(service.url, {
      ONCEWARD_SWEEP_INTERVAL: "100ms",
      ONCEWARD_USAGE_FLUSH: "100ms",
    });
    try {
      const client = connectClient(server, (await createTenant(owner)).apiKey);
      await complete(client);
      const claim = await grant(client, { key: "released" });
      await client.release({ namespace: "charges", key: "released", fencingToken: claim.fencingToken });
      await expect.poll(async () => (await owner.query("select from usage_hours")).length).toBeGreaterThan(0);
      const failures = [...(await readMetrics(server))].filter(
        ([name, count]) => /_errors_total/.test(name) && count > 0,
      );
      expect(failures).toEqual([]);
      expect(server.log.filter(({ level }) => Number(level) >= 40)).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  test("makes keys and prepares a restored database, with the commands of onceward-server", async () => {
    const workplace = await createWorkplace();
    const settings = settingsFor(service.url);
    for (const args of [["tenant-key", "--tenant", "acme"]]) {
      expect(await runCommand(args, workplace, settings)).toMatchObject({ exit: 0 });
    }
  });

  test("owns nothing, and can change neither the schema nor audit events", async () => {
    const owned = await owner.query(
      "select relname from pg_class join pg_roles on pg_roles.oid = relowner where rolname = 'onceward_service'",
    );
    expect(owned).toEqual([]);
    for (const statement of [
      "update audit_events set actor = 'nobody'",
      "delete from audit_events",
      "truncate audit_events",
      "alter table audit_events disable trigger all",
      "drop table records",
      "create table extra ()",
      "delete from schema_migrations",
    ]) {
      await expect(service.query(statement), statement).rejects.toThrow(/permission denied|must be owner/);
    }
  });

  test("the file can be run again, and sets the password, also from a file", async () => {
    const stored = async () =>
      (await owner.query("select rolpassword from pg_authid where rolname = 'onceward_service'"))[0];
    const { dir } = await createWorkplace();
    const file = join(dir, "password");
    await writeFile(file, "it's another password");
    const before = await stored();
    await makeRole({ SERVICE_PASSWORD_FILE: file });
    expect(await stored()).not.toEqual(before);
    await makeRole();
    expect(await service.query("select 1 as one")).toEqual([{ one: 1 }]);
  });

  test("the file takes rights away that the role has by mistake", async () => {
    await owner.query("alter role onceward_service createdb bypassrls");
    await makeRole();
    const rights = "select rolcreatedb, rolbypassrls from pg_roles where rolname = 'onceward_service'";
    expect(await owner.query(rights)).toEqual([{ rolcreatedb: false, rolbypassrls: false }]);
  });

  test("the file can be run by several at once, as pods do that start together", async () => {
    await Promise.all(Array.from({ length: 8 }, () => makeRole()));
  });
});
