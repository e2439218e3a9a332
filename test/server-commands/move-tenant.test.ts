import { execFile, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test, vi } from "vitest";
import { createOnceward } from "../../clients/typescript/src/index.ts";
import type { Host } from "../../server/src/commands/host.ts";
import { describeFailure } from "../../server/src/commands/process.ts";
import { raiseTokenFloor } from "../../server/src/database/installation.ts";
import { exportTenant } from "../../server/src/moving/export-tenant.ts";
import { importTenant } from "../../server/src/moving/import-tenant.ts";
import { connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { seconds, success } from "../support/calls/verbs.ts";
import { openConnection, openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { socketOf } from "../support/network/sockets.ts";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { newDir } from "../support/new-dir.ts";
import { failed } from "../support/processes/cli.ts";
import { runWithInput } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";

/** An installation: a database with its own encryption key, and a server. */
interface Home {
  readonly database: TestDatabase;
  readonly server: TestServer;
  readonly settings: Readonly<Record<string, string>>;
}

async function startHome(): Promise<Home> {
  const database = await createDatabaseOfTest();
  const settings = {
    ...settingsFor(database.url),
    ONCEWARD_ENCRYPTION_KEYS: `1:${randomBytes(32).toString("base64")}`,
  };
  const { ONCEWARD_ENCRYPTION_KEYS } = settings;
  const server = await startTestServer(database.url, { ONCEWARD_ENCRYPTION_KEYS, ONCEWARD_CACHE_MIB: "8" });
  onTestFinished(() => server.stop());
  return { database, server, settings };
}

const runWith = (input: string, args: readonly string[], { settings }: Home) =>
  runWithInput(input, args, settings);

/** Exports a tenant in this process, whose clock shows the end of the wait as soon as it begins. Resolves with the lines. */
async function exportAfterTheWait(name: string, { settings }: Home): Promise<string> {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs);
  const written: string[] = [];
  const host: Partial<Host> = {
    args: ["--tenant", name],
    env: settings,
    write: async (text) => void written.push(text),
    report: () => {
      aheadMs = 3_600_000;
    },
  };
  try {
    await exportTenant(host as Host);
  } finally {
    clock.mockRestore();
  }
  return written.join("");
}

/** Imports a tenant in this process. Resolves with what the command prints of its failure. */
async function refusalOfImport(exported: string, { settings }: Home): Promise<string> {
  const host: Partial<Host> = { args: [], env: settings, input: Readable.from([Buffer.from(exported)]) };
  return await importTenant(host as Host).then(() => "It succeeded.", describeFailure);
}

test("a tenant moves: tokens rise, results and keys work, and damaged exports store nothing", async () => {
  const [from, to] = [await startHome(), await startHome()];
  // The old home's clock was ahead by an hour once.
  await raiseTokenFloor(openStorePool(from.database), (Date.now() + 3_600_000) * 1000);
  const tenant = await createTenant(from.database);
  // Ids of the two homes collide: the first tenant of the new one has the same number.
  await createTenant(to.database);
  const [old, next] = [connectClient(from.server, tenant.apiKey), connectClient(to.server, tenant.apiKey)];
  const id = (key: string) => ({ namespace: "charges", key });

  const completed = granted(await old.claim(id("completed")));
  await old.complete({ ...id("completed"), fencingToken: completed.fencingToken, result: success("paid") });
  const released = granted(await old.claim(id("released")));
  await old.release({ ...id("released"), fencingToken: released.fencingToken });
  const held = granted(await old.claim({ ...id("held"), lease: seconds(600) }));
  const checkpoint = { name: "charged", state: Buffer.from("secret state") };
  await old.extendLease({ ...id("held"), fencingToken: held.fencingToken, lease: seconds(600), checkpoint });
  const swept = granted(await old.claim(id("swept")));
  await from.database.query("delete from records where key = 'swept'");

  const exported = await exportAfterTheWait(tenant.name, from);
  expect(exported).not.toContain(tenant.apiKey);

  const lines = exported.split("\n");
  const cutOff = lines.slice(0, -2).join("\n");
  expect(await runWith(`${cutOff}\n`, ["import-tenant"], to)).toMatchObject(
    failed(1, "the last line is missing: the export was cut off"),
  );
  const third = await startHome();
  const otherPepper = {
    ...third,
    settings: { ...third.settings, ONCEWARD_API_KEY_PEPPER: "p".repeat(40) },
  };
  expect(await runWith(exported, ["import-tenant"], otherPepper)).toMatchObject(
    failed(1, "different values of ONCEWARD_API_KEY_PEPPER"),
  );
  const { ONCEWARD_ENCRYPTION_KEYS: _, ...withoutKeys } = to.settings;
  expect(await runWith(exported, ["import-tenant"], { ...to, settings: withoutKeys })).toMatchObject(
    failed(1, "ONCEWARD_ENCRYPTION_KEYS lacks key 1"),
  );
  for (const { database } of [to, third])
    expect(await database.query("select name from tenants where name = $1", [tenant.name])).toEqual([]);

  const imported = await runWith(exported, ["import-tenant"], to);
  expect(imported).toMatchObject({ exit: 0, stderr: "" });
  expect(imported.stdout).toMatch(
    new RegExp(`^Tenant ${tenant.name} is served here, with \\d+ records\\.\n$`),
  );
  expect((await next.claim(id("completed"))).outcome).toMatchObject({ value: { result: success("paid") } });
  for (const [key, was] of Object.entries({ released, swept })) {
    expect(granted(await next.claim(id(key))).fencingToken).toBeGreaterThan(was.fencingToken);
  }
  expect((await next.claim(id("held"))).outcome).toMatchObject({ case: "inProgress" });
  await to.database.query("update records set lease_expires_at = now() where key = 'held'");
  const taken = granted(await next.claim(id("held")));
  expect(taken.fencingToken).toBeGreaterThan(held.fencingToken);
  expect({
    name: taken.checkpoint?.name,
    state: String(taken.checkpoint?.state && Buffer.from(taken.checkpoint.state)),
  }).toEqual({
    name: "charged",
    state: "secret state",
  });

  const late = () => errorOf(old.claim(id("late")));
  await expect.poll(late, { timeout: 20_000 }).toMatchObject({ reason: "TENANT_MOVING" });
  expect(await runWith(exported, ["import-tenant"], to)).toMatchObject({
    exit: 1,
    stderr: `This installation has a tenant ${tenant.name} already.\n`,
  });
  const audit = (home: Home) =>
    home.database.query("select action from audit_events where tenant = $1", [tenant.name]);
  expect([await audit(from), await audit(to)]).toEqual([
    [{ action: "ExportTenant" }],
    [{ action: "ImportTenant" }],
  ]);
});

/** Programs with four workers, who run the same keys as those of other programs, and print each effect and each answer. */
const PROGRAMS = {
  python: `
import os, threading, time
from onceward import Onceward, OncewardError
client = Onceward(os.environ["ADDRESSES"].split(","), api_key=os.environ["KEY"], timeout_ms=1000, wait_ms=1000)
def work(n):
    while True:
        try:
            client.run("charges", f"order-{n}", lambda _: print(f"effect {n}\\n", end="", flush=True), lease_ms=600_000)
            print("answer\\n", end="", flush=True)
            time.sleep(0.02)
        except OncewardError:
            time.sleep(0.2)
        n += 1
for lane in range(4):
    threading.Thread(target=work, args=(lane * 50,)).start()`,
  go: `package main
import ("context"; "fmt"; "os"; "time"; "github.com/onceward/onceward/clients/go/onceward")
func main() {
  client, err := onceward.New(os.Getenv("ADDRESSES"), onceward.Options{APIKey: os.Getenv("KEY"), Timeout: time.Second, Wait: time.Second})
  if err != nil { panic(err) }
  for lane := range 4 {
    go func() {
      for n := lane * 50; ; n++ {
        operation := onceward.Operation{Namespace: "charges", Key: fmt.Sprint("order-", n), Lease: 10 * time.Minute}
        _, err := onceward.Run(context.Background(), client, operation, func(context.Context, *onceward.Claim) (int, error) {
          fmt.Printf("effect %d\\n", n)
          return n, nil
        })
        if err != nil { time.Sleep(200 * time.Millisecond); continue }
        fmt.Println("answer")
        time.Sleep(20 * time.Millisecond)
      }
    }()
  }
  select {}
}`,
};

const run = promisify(execFile);
const CLIENTS = fileURLToPath(new URL("../../clients", import.meta.url));

/** Returns how to start each program whose language this machine has. */
async function readyPrograms() {
  const dir = await newDir();
  await writeFile(join(dir, "main.go"), PROGRAMS.go);
  const python = { PYTHONPATH: join(CLIENTS, "python/src") };
  const env = { ...process.env, ...python };
  const found = await Promise.allSettled([
    run("python3", ["-c", "import onceward"], { env }).then(() => ["python3", "-c", PROGRAMS.python]),
    run("go", ["build", "-C", join(CLIENTS, "go"), "-o", join(dir, "go"), join(dir, "main.go")]).then(() => [
      join(dir, "go"),
    ]),
  ]);
  return found.flatMap((each, index) =>
    each.status === "fulfilled" ? [[Object.keys(PROGRAMS)[index] ?? "", each.value, env] as const] : [],
  );
}

test("clients of each language follow a tenant under load, and no effect happens twice", async () => {
  const [from, to] = [await startHome(), await startHome()];
  const { ONCEWARD_ENCRYPTION_KEYS = "" } = from.settings;
  const replica = await startTestServer(from.database.url, { ONCEWARD_ENCRYPTION_KEYS });
  onTestFinished(() => replica.stop());
  const tenant = await createTenant(from.database);
  const operator = connectOperator(from.server, await createApiKey(from.database, { role: "OPERATOR" }));
  const addresses = [from.server, replica].map(({ grpcPort }) => `http://127.0.0.1:${grpcPort}`);

  const effects: string[] = [];
  /** When each language had its first answer since the tenant was redirected. */
  const answered = new Map<string, number>();
  const note = (language: string, line: string) => {
    if (line.startsWith("effect")) effects.push(line);
    else if (!answered.has(language)) answered.set(language, performance.now());
  };
  const programs = await readyPrograms();
  for (const [language, [program = "", ...args], env] of programs) {
    const child = spawn(program, args, {
      env: { ...env, ADDRESSES: `${addresses}`, KEY: tenant.apiKey },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    createInterface(child.stdout).on("line", (line) => note(language, line));
  }
  const client = createOnceward({ address: addresses, apiKey: tenant.apiKey, timeoutMs: 1000, waitMs: 1000 });
  onTestFinished(() => client.close({ timeoutMs: 0 }));
  let isStopped = false;
  const work = async (first: number) => {
    for (let n = first; !isStopped; n++) {
      const operation = { namespace: "charges", key: `order-${n}`, leaseMs: 600_000 };
      const ran = client.run(operation, () => note("typescript", `effect ${n}`));
      await ran.then(
        () => note("typescript", "answer"),
        () => pause(200),
      );
      await pause(20);
    }
  };
  const workers = [0, 50, 100, 150].map(work);
  const languages = programs.length + 1;
  await expect.poll(() => answered.size, { timeout: 60_000 }).toBe(languages);

  const exported = await runWith("", ["export-tenant", "--tenant", tenant.name], from);
  expect(exported).toMatchObject({ exit: 0 });
  expect(await runWith(exported.stdout, ["import-tenant"], to)).toMatchObject({ exit: 0 });
  answered.clear();
  const before = effects.length;
  const address = `http://127.0.0.1:${to.server.grpcPort}`;
  await operator.redirectTenant({ name: tenant.name, address, reason: "moved" });
  const redirectedAtMs = performance.now();
  await expect.poll(() => answered.size, { timeout: 60_000 }).toBe(languages);
  await expect.poll(() => effects.length, { timeout: 60_000 }).toBeGreaterThan(before + 100);
  isStopped = true;
  await Promise.all(workers);
  const times = [...answered].map(
    ([language, atMs]) => `${language} ${Math.round(atMs - redirectedAtMs)} ms`,
  );
  process.stderr.write(`First answers of the new home, of ${effects.length} effects: ${times.join(", ")}.\n`);
  expect(effects.filter((each, index) => effects.indexOf(each) !== index)).toEqual([]);
});

test("a tenant takes a loss of records along: an older key begins no second life", async () => {
  const [from, to] = [await startHome(), await startHome()];
  const tenant = await createTenant(from.database);
  await from.database.query("update tenants set late_keys = 'REQUIRE_TIME'");
  await from.database.query("update installation set records_lost_at = now() - interval '10 minutes'");
  const imported = await runWith(await exportAfterTheWait(tenant.name, from), ["import-tenant"], to);
  expect(imported).toMatchObject({ exit: 0, stderr: "" });
  const client = connectClient(to.server, tenant.apiKey);
  const claimOfAge = (minutes: number) =>
    client.claim({
      namespace: "charges",
      key: `of ${minutes} min`,
      keyCreatedAt: timestampFromMs(Date.now() - minutes * 60_000),
    });
  expect(await errorOf(claimOfAge(60))).toMatchObject({ reason: "KEY_TOO_OLD" });
  granted(await claimOfAge(5));

  const third = await startHome();
  await third.database.query("update installation set records_lost_at = now() - interval '20 minutes'");
  const again = await runWith(await exportAfterTheWait(tenant.name, to), ["import-tenant"], third);
  expect(again).toMatchObject({ exit: 0, stderr: "" });
  const [moved] = await third.database.query(
    "select records_lost_at > now() - interval '15 minutes' as is_later from tenants",
  );
  expect(moved).toEqual({ is_later: true });
});

test("an import whose last answer is lost says so, and its repeat is refused", async () => {
  const [from, to] = [await startHome(), await startHome()];
  const { name, apiKey } = await createTenant(from.database);
  granted(await connectClient(from.server, apiKey).claim({ namespace: "charges", key: "order-1" }));
  const exported = await exportAfterTheWait(name, from);
  await to.database.query(`
    create function wait_for_test() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(1); return null; end';
    create constraint trigger at_commit after insert on tenants initially deferred
      for each row execute function wait_for_test()`);
  const gate = await openConnection(to.database);
  await gate.query("select pg_advisory_lock(1)");
  const proxy = await startTcpProxy(socketOf(to.database.url));
  onTestFinished(() => proxy.close());
  const { username, pathname } = new URL(to.database.url);
  const databaseUrl = `postgresql://${username}@127.0.0.1:${proxy.port}${pathname}`;
  const importing = refusalOfImport(exported, {
    ...to,
    settings: { ...to.settings, DATABASE_URL: databaseUrl },
  });
  const readCommit = () =>
    to.database.query("select from pg_locks where locktype = 'advisory' and not granted");
  await expect.poll(readCommit).toHaveLength(1);
  proxy.setMode("drop-replies");
  await gate.query("select pg_advisory_unlock(1)");
  const readStored = () => to.database.query("select name from tenants");
  await expect.poll(readStored).toEqual([{ name }]);
  proxy.cut();
  expect(await importing).toContain("the tenant may be served here");
  expect(await refusalOfImport(exported, to)).toBe(`This installation has a tenant ${name} already.`);
});

test("an export of a resumed tenant fails; an import refuses an edited file and stores nothing", async () => {
  const [from, to] = [await startHome(), await startHome()];
  const { name, apiKey } = await createTenant(from.database);
  const old = connectClient(from.server, apiKey);
  const { fencingToken } = granted(await old.claim({ namespace: "charges", key: "order-1" }));
  const moveSince = (since: string) => from.database.query(`update tenants set moving_since = ${since}`);
  const resumed = "The tenant was resumed during the export";

  // By the database's clock, all replicas have refused its calls for long: the export waits nevertheless, and looks again and again.
  await moveSince("now() - interval '1 hour'");
  const waiting = runWith("", ["export-tenant", "--tenant", name], from);
  const looks = new Set<string>();
  const readLook = async () => {
    const [look] = await from.database.query<{ at: string }>(
      `select query_start::text as at from pg_stat_activity
        where query like '%as "unfinishedJobs"%' and pid <> pg_backend_pid() and datname = current_database()`,
    );
    if (look !== undefined) looks.add(look.at);
    return looks.size;
  };
  await expect.poll(readLook).toBe(4);
  await moveSince("null");
  expect(await waiting).toMatchObject({ exit: 1, stderr: expect.stringContaining(resumed) });

  await moveSince("now()");
  const lock = await openConnection(from.database);
  await lock.query("begin");
  await lock.query("lock table records in access exclusive mode");
  const copying = exportAfterTheWait(name, from);
  const readWaiting = () =>
    from.database.query(
      "select from pg_locks join pg_database d on d.oid = database where datname = current_database() and not granted",
    );
  await expect.poll(readWaiting).not.toEqual([]);
  await moveSince("null");
  await lock.query("commit");
  await expect(copying).rejects.toThrow(resumed);

  await moveSince("now()");
  const [first = "", ...others] = (await exportAfterTheWait(name, from)).trimEnd().split("\n");
  const head = JSON.parse(first);
  const record = JSON.parse(others.find((line) => line.includes('"record"')) ?? "");
  const edit = (line: { readonly row: string }, values: object) => ({
    ...line,
    row: JSON.stringify({ ...JSON.parse(line.row), ...values }),
  });
  const end = { kind: "end", lines: 1 };
  const edited: readonly (readonly [readonly object[], string])[] = [
    [[edit(head, { uid: randomUUID() })], "the tenant's row has the column uid"],
    [[{ ...head, row: "null" }], "a row of tenants is not a JSON object with columns"],
    [[{ ...head, row: "[".repeat(100_000) }], "a row of tenants is not JSON"],
    [[{ ...head, format: "onceward-tenant/2" }], "a line is malformed at format"],
    [[{ ...head, tokenFloor: String(fencingToken - 1n) }, record], "a record's fencing token is not between"],
    [[head, { ...record, row: "{}" }], "a row of records is not a JSON object with columns"],
    [[head, edit(record, { tenant_id: 1 }), end], "tenant_id"],
    [[head, edit(record, { "x) select": 1 }), end], "a row of records has columns that this schema lacks"],
    [[head, head], "a second tenant follows"],
    [[head, { kind: "end", lines: 0 }, record], "a line follows the last one"],
    [[head, { kind: "row", table: "audit_events", row: "{}" }], "a line is malformed at table"],
  ];
  for (const [lines, message] of edited) {
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const refused = await refusalOfImport(input, to);
    expect(refused).toContain(message);
    expect(refused).not.toMatch(/\n +at /);
  }
  expect(await to.database.query("select from tenants")).toEqual([]);
});
