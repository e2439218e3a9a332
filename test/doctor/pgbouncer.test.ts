import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { connectClient } from "../helpers/calls/clients.ts";
import { complete, ORDER, success } from "../helpers/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";
import { describeWithPgBouncer, startPgBouncer } from "../helpers/database/pgbouncer.ts";
import { diagnoseDatabase } from "../helpers/doctor/diagnosis.ts";
import { createWorkplace, startCommand } from "../helpers/processes/command.ts";
import { runHere } from "../helpers/processes/run-here.ts";
import { settingsFor } from "../helpers/processes/serve.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

const SWITCH = { ONCEWARD_PGBOUNCER: "true" };
const IGNORES = { ignoresSettings: true };

describeWithPgBouncer("behind PgBouncer", () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await createTestDatabase();
    onTestFinished(() => database.drop());
  });

  /** Returns the ids that concern the pooler. */
  async function poolerFindings(url: string, env: Readonly<Record<string, string>> = {}) {
    const ids = (await diagnoseDatabase(url, { DATABASE_DIRECT_URL: database.url, ...env })).findings.map(
      ({ id }) => id,
    );
    return ids.filter((id) => /pgbouncer|session_settings|direct_url|check_failed/.test(id));
  }

  test.each([
    ["in transaction mode, which drops the settings", { mode: "transaction", ...IGNORES }],
    ["in transaction mode, which refuses the settings", { mode: "transaction" }],
    ["in session mode, which refuses the settings", { mode: "session" }],
  ] as const)(
    "a forgotten switch is found %s, and serve refuses to start and names it",
    async (_, settings) => {
      const url = await startPgBouncer(database.url, settings);
      expect(await poolerFindings(url)).toEqual(["pgbouncer_switch_missing"]);
      const env = { ...settingsFor(url), DATABASE_DIRECT_URL: database.url };
      const served = await runHere(["serve"], env);
      expect(served).toMatchObject({ exit: 1, stdout: "" });
      expect(served.stderr).toMatch(/^DATABASE_URL leads to a pooler .* Set ONCEWARD_PGBOUNCER=true/);
    },
  );

  test("the switch without the role's settings and without a direct URL is found", async () => {
    const url = await startPgBouncer(database.url, { mode: "transaction" });
    expect(await poolerFindings(url, { ...SWITCH, DATABASE_DIRECT_URL: "" })).toEqual([
      "session_settings_missing",
      "direct_url_missing",
    ]);
  });

  test("session mode that drops the settings is found", async () => {
    const url = await startPgBouncer(database.url, { mode: "session", ...IGNORES });
    expect(await poolerFindings(url)).toEqual(["session_settings_missing"]);
  });

  test("a needless switch is found", async () => {
    expect(await poolerFindings(database.url, SWITCH)).toEqual([
      "session_settings_missing",
      "pgbouncer_switch_needless",
    ]);
  });

  test("with the settings of server/settings.md nothing is found, and calls are answered", async () => {
    const role = await createRole(database);
    const url = await startPgBouncer(database.url, { mode: "transaction", role });
    expect(await poolerFindings(url, SWITCH)).toEqual([]);
    const env = {
      ...settingsFor(url),
      ...SWITCH,
      DATABASE_DIRECT_URL: database.url,
      ONCEWARD_DRAIN_DELAY: "0s",
    };
    const server = startCommand(["serve"], await createWorkplace(), env);
    const [line] = await server.untilPrinted(/^.*"serving".*$/m);
    const client = connectClient(JSON.parse(line), (await createTenant(database)).apiKey);
    await complete(client, success("paid"));
    expect((await client.claim(ORDER)).outcome.case).toBe("completed");
  });
});

/** Creates a superuser with the settings that server/settings.md lists. */
async function createRole(database: TestDatabase): Promise<string> {
  const role = `pooled_${randomBytes(4).toString("hex")}`;
  await database.query(`create role ${role} login superuser`);
  onTestFinished(() => database.query(`drop role ${role}`).then(() => {}));
  const page = await readFile(new URL("../../server/settings.md", import.meta.url), "utf8");
  const [, settings = ""] = /```sql\n(alter role[\s\S]*?)```/.exec(page) ?? [];
  await database.query(settings.replaceAll("role onceward set", `role ${role} set`));
  return role;
}
