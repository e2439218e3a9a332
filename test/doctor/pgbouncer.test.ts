import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { complete, ORDER, success } from "../support/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";
import { failed } from "../support/processes/cli.ts";
import { createWorkplace, startCommand } from "../support/processes/command.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { freePort } from "../support/redis/redis.ts";
import { createTenant } from "../support/servers/tenants.ts";

/** Runs tests that need a PgBouncer; skips them if none is installed, which the setup prints. */
function describeWithPgBouncer(title: string, tests: () => void): void {
  describe.runIf(Boolean(inject("pgBouncerProgram")))(title, tests);
}

interface PgBouncerSettings {
  readonly mode: "session" | "transaction";
  /** Whether start-up settings are dropped; otherwise PgBouncer refuses connections with them. */
  readonly ignoresSettings?: boolean;
  /** The role that it uses in Postgres; the URL's unless set. */
  readonly role?: string;
}

/** Runs the pooler until standard input ends, as it does when the tests are killed. */
const WATCHED = '"$@" & read -r _; kill -9 $! 2>/dev/null; wait';
const IGNORED =
  "extra_float_digits, options, statement_timeout, lock_timeout, idle_in_transaction_session_timeout";

/** Starts a PgBouncer before a database for one test, and returns the database's URL through it. */
async function startPgBouncer(databaseUrl: string, settings: PgBouncerSettings): Promise<string> {
  const database = new URL(databaseUrl);
  const socketDir = database.searchParams.get("host") ?? "";
  const name = database.pathname.slice(1);
  const role = settings.role ?? database.username;
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), "ow-pgbouncer-"));
  await chmod(dir, 0o755);
  const config = join(dir, "pgbouncer.ini");
  await writeFile(
    config,
    `[databases]
${name} = host=${socketDir} port=${database.port} dbname=${name} user=${role}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${settings.mode}
${settings.ignoresSettings ? `ignore_startup_parameters = ${IGNORED}` : ""}
`,
  );
  // PgBouncer does not run as root, and only Postgres' user can reach its socket.
  const { uid, gid } = await stat(socketDir);
  const child = spawn("sh", ["-c", WATCHED, "sh", inject("pgBouncerProgram"), "--quiet", config], {
    stdio: ["pipe", "ignore", "inherit"],
    ...(process.getuid?.() === 0 && { uid, gid }),
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.stdin.end();
    await exited;
    await rm(dir, { recursive: true, force: true });
  });
  const url = `postgresql://${role}@127.0.0.1:${port}/${name}`;
  await expect.poll(() => answers(url)).toBe(true);
  return url;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

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
      expect(served).toMatchObject(
        failed(1, /^DATABASE_URL leads to a pooler .* Set ONCEWARD_PGBOUNCER=true/),
      );
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
