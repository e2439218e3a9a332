import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectAdmin } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { startLoad } from "../support/calls/steady-load.ts";
import { complete, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { openDatabase } from "../support/database/database.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";
import { cliWith, failed } from "../support/processes/cli.ts";
import { type Command, createWorkplace, startCommand } from "../support/processes/command.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";

// Postgres ends a connection that is silent for as long as a receiver may hang here.
const BOUNDS = { max_slot_wal_keep_size: "64MB", wal_sender_timeout: "3s" };
const postgres = useOwnPostgres({ fsync: "off", wal_level: "logical", ...BOUNDS });
const PATIENT = { timeout: 30_000, interval: 100 };

interface Event {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Returns a migrated database with a server and a tenant, and what exports to the directory `out`. */
async function startHome(env: Readonly<Record<string, string>> = {}) {
  const url = await postgres.createDatabase();
  const settings = { ...settingsFor(url), ...env };
  expect(await runHere(["migrate"], settings)).toMatchObject({ exit: 0 });
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  const server = await startTestServer(url, { ...env, ONCEWARD_USAGE_FLUSH: "100ms" });
  onTestFinished(() => server.stop());
  const tenant = await createTenant(database);
  const workplace = await createWorkplace();
  const slot = `onceward_${randomBytes(4).toString("hex")}`;
  const exportTo = (to: string, ...args: readonly string[]) =>
    startCommand(["export-history", "--to", to, "--slot", slot, ...args], workplace, settings);
  const folder = join(workplace.dir, "out", `${tenant.name}-${tenant.id}`);
  await mkdir(dirname(folder));
  /** Returns the tenant's lines; damaged ones are left out. */
  const lines = async () => {
    const names = (await readdir(folder).catch(() => [])).sort();
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
    return texts.flatMap((text) => text.split("\n")).filter((line) => line.endsWith("}}"));
  };
  return {
    ...{ settings, database, tenant, server, slot, folder, exportTo },
    connect: () => connectClient(server, tenant.apiKey),
    async end(command: Command) {
      command.signal("SIGTERM");
      expect(await command.ended).toMatchObject({ exit: 0, stderr: "" });
    },
    /** Ends the export's connection; returns how many there were. */
    async disconnect() {
      const end =
        "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1 and active";
      return (await database.query(end, [slot])).length;
    },
    async exporting(...args: readonly string[]) {
      const command = exportTo("out", ...args);
      await command.untilPrinted(/^Exporting from /m);
      return command;
    },
    lines,
    /** Returns the tenant's events by their short types, in the order of its lines. */
    async exported(): Promise<readonly (readonly [type: string, data: Event["data"]])[]> {
      const events = (await lines()).map((line) => JSON.parse(line) as Event);
      return events.map(({ type, data }) => [type.split(".").at(-1) ?? "", data]);
    },
  };
}

test("a killed export under load loses no grant and no completion", { timeout: 180_000 }, async () => {
  const home = await startHome();
  let exporting = await home.exporting();
  const load = startLoad(Array.from({ length: 2 }, home.connect), "charges");
  for (let kill = 0; kill < 3; kill++) {
    await load.more(200);
    await expect.poll(home.disconnect, PATIENT).toBe(1);
    await exporting.untilPrinted(/^Exporting from [\s\S]*^Exporting from /m);
    await load.more(100);
    exporting.signal("SIGKILL");
    await exporting.ended;
    exporting = await home.exporting();
  }
  await load.stop();
  const missing = async (type: string) => {
    const events = (await home.exported()).filter(([each]) => each === type);
    const keys = new Set(events.map(([, { key }]) => key));
    return [...load.acknowledged.keys()].filter((key) => !keys.has(key));
  };
  await expect.poll(() => missing("completed"), PATIENT).toEqual([]);
  expect(await missing("granted")).toEqual([]);
  // An export is not a standby.
  const { findings } = await diagnoseDatabase(home.database.url);
  expect(findings.map(({ id }) => id)).not.toContain("standby_asynchronous");
  // A position after the end of the log would skip a transaction that begins to commit there; a page of it has a header.
  await home.server.stop();
  const find =
    "select confirmed_flush_lsn - pg_current_wal_insert_lsn() as ahead from pg_replication_slots where slot_name = $1";
  const ahead = async () => Number((await home.database.query(find, [home.slot]))[0]?.ahead);
  await expect.poll(ahead, PATIENT).toBeOneOf([0, -24, -40]);
  await home.end(exporting);
});

test("what a webhook has not taken is not confirmed, and comes again", { timeout: 60_000 }, async () => {
  const home = await startHome({ ONCEWARD_EXPORT_TOKEN: "of the receiver" });
  const answers = [200, 500, 0, 302, 401, 200];
  const batches: string[] = [];
  const seen: IncomingHttpHeaders[] = [];
  const hung = Promise.withResolvers<void>();
  const receiver = createServer(async (request, reply) => {
    const events = JSON.parse(String(await buffer(request))) as readonly Event[];
    batches.push(events.map(({ type }) => type.replace("onceward.", "")).join());
    const status = answers[seen.push(request.headers) - 1] ?? 200;
    if (status === 0) return void reply.once("close", hung.resolve);
    const body = status === 200 ? "x".repeat(100_000) : "who\nare you?";
    reply.writeHead(status, { location: "http://127.0.0.1:1/" }).end(body);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void receiver.close().closeAllConnections());
  await once(receiver, "listening");
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const exporting = home.exportTo(url);
  await exporting.untilPrinted(/^Exporting from /m);
  await complete(home.connect());
  await expect.poll(() => seen.length, PATIENT).toBe(3);
  // The receiver hangs with the same batch, until the next stream would send it again.
  await home.disconnect();
  await hung.promise;
  exporting.signal("SIGKILL");
  await exporting.ended;
  for (const status of [302, 401]) {
    const { exit, stderr } = await home.exportTo(url).ended;
    expect([exit, stderr]).toEqual([1, expect.stringContaining(`answered ${status}: who are you?`)]);
  }
  const again = home.exportTo(url);
  await expect.poll(() => seen.length, PATIENT).toBe(6);
  await home.end(again);
  expect(batches).toEqual(["history.gap", ...Array(5).fill("record.granted,record.completed")]);
  expect(new Set(seen.map((headers) => headers["idempotency-key"])).size).toBe(2);
  const type = "application/cloudevents-batch+json; charset=utf-8";
  expect(seen[1]).toMatchObject({ authorization: "Bearer of the receiver", "content-type": type });
});

test("the stream tells the story of a key, and the command line retells it", {
  timeout: 60_000,
}, async () => {
  const home = await startHome({ ONCEWARD_ENCRYPTION_KEYS: `1:${randomBytes(32).toString("base64")}` });
  const { database, tenant } = home;
  const exporting = await home.exporting("--results");
  const client = home.connect();
  const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const admin = connectAdmin(home.server, adminKey);
  const id = { ...ORDER, key: "order\u{1f4b3}/../.." };
  const as = (requestId: string) => ({ headers: { "x-request-id": requestId } });
  // Too large to be in the row.
  const paid = randomBytes(20_000).toString("hex");

  const { fencingToken } = await grant(client, {
    ...id,
    owner: "worker-1",
    claimId: "c-1",
    lease: seconds(7),
  });
  await client.claim(id, as("early"));
  const checkpoint = { name: "half", state: randomBytes(10_000) };
  await client.extendLease({ ...id, fencingToken, lease: seconds(60), checkpoint });
  await database.query("update records set lease_expires_at = now() - interval '1 ms'");
  const search = await grant(client, { ...id, owner: "resolver", acceptAmbiguous: true });
  await client.release({ ...id, fencingToken: search.fencingToken, giveBack: true });
  await client.extendLease({ ...id, fencingToken, lease: seconds(60) });
  await database.query("update records set lease_expires_at = now() - interval '1 ms'");
  const second = await grant(client, { ...id, owner: "worker-2" });
  await client.release({ ...id, fencingToken: second.fencingToken, reason: "no money" });
  const third = await grant(client, id);
  await client.complete({ ...id, fencingToken: third.fencingToken, result: success(paid) });
  await client.claim(id, as("again"));
  await database.query("update records set expires_at = expires_at + interval '1 s'");
  await client.claim({ ...ORDER, key: "at-once", claimId: "c-2", completion: {} });
  const held = { ...ORDER, key: "held" };
  await grant(client, held);
  const reason = "seen at the bank";
  await admin.resolveRecord({
    ...held,
    reason,
    resolution: { case: "complete", value: { result: success("") } },
  });
  await admin.resolveRecord({ ...held, reason, resolution: { case: "forget", value: {} } });
  await database.query("delete from records where key = 'held'");

  const story = async (of: string) => (await home.exported()).filter(([, { key }]) => key === of);
  await expect
    .poll(() => story("held"), PATIENT)
    .toMatchObject([
      ["granted", { attempt: 1 }],
      ["completed", { resolved: { reason } }],
      ["forgotten", {}],
      ["deleted", {}],
    ]);
  expect(await story("at-once")).toMatchObject([
    ["granted", {}],
    ["completed", {}],
  ]);
  const told = await story(id.key);
  expect(told).toMatchObject([
    ["granted", { tenant: tenant.name, owner: "worker-1", claimId: "c-1", fencingToken: `${fencingToken}` }],
    ["granted", { owner: "resolver", attempt: 2 }],
    ["given_back", { restored: { fencingToken: `${fencingToken}` } }],
    ["granted", { owner: "worker-2", attempt: 2 }],
    ["released", { attempt: 2, releaseReason: "no money" }],
    ["granted", { attempt: 3 }],
    ["completed", { attempt: 3, result: { kind: "KIND_SUCCESS", payload: btoa(paid) } }],
  ]);
  const declined = async () =>
    (await home.exported()).filter(([type]) => type === "declined").at(-1)?.[1].calls;
  await expect.poll(declined, PATIENT).toMatchObject([{ requestId: "early" }, { requestId: "again" }]);
  await home.end(exporting);

  const cli = cliWith({});
  const ask = (...args: string[]) => [
    "records",
    "history",
    id.namespace,
    id.key,
    "--from",
    home.folder,
    ...args,
  ];
  const { tenants } = (await cli.json(...ask())) as { tenants: unknown };
  expect(tenants).toMatchObject([
    {
      replayed: "1",
      inProgress: "1",
      calls: [{ requestId: "early" }, { requestId: "again" }],
      events: told.map(([type, data]) => ({ type: `onceward.record.${type}`, data })),
    },
  ]);
  const text = (await cli(...ask("--wide"))).stdout;
  expect(text).toMatch(/2 duplicates[\s\S]* released .* no money[\s\S]*The export of .* reaches from /);
  const unknown = ask().map((arg) => (arg === id.key ? "order-9" : arg));
  expect(await cli(...unknown)).toMatchObject({ exit: 4, stdout: "" });
});

test("after a lost slot the stream says what it lacks", { timeout: 60_000 }, async () => {
  const home = await startHome();
  const exporting = await home.exporting();
  await grant(home.connect());
  const types = async () => (await home.exported()).map(([type, { cause }]) => cause ?? type);
  await expect.poll(types, PATIENT).toEqual(["no_slot", "granted"]);
  await home.end(exporting);
  const [file = ""] = await readdir(home.folder);
  await appendFile(join(home.folder, file), '{"specversion":"1.0","ty');
  // More log than the slot may keep.
  const status = async () => {
    const fill =
      "select pg_logical_emit_message(false, 'fill', repeat('x', 16000000)) from generate_series(1, 8)";
    await home.database.query(fill);
    await home.database.query("checkpoint");
    const find = "select wal_status from pg_replication_slots where slot_name = $1";
    return (await home.database.query(find, [home.slot]))[0]?.wal_status;
  };
  await expect.poll(status, PATIENT).toBe("lost");
  const again = await home.exporting();
  await grant(home.connect(), { ...ORDER, key: "order-2" });
  await expect.poll(types, PATIENT).toEqual(["no_slot", "granted", "slot_lost", "granted"]);
  await home.end(again);
  await grant(home.connect(), { ...ORDER, key: "unpublished" });
  const withResults = await home.exporting("--results");
  const changed = ["no_slot", "granted", "slot_lost", "granted", "publication_changed"];
  await expect.poll(types, PATIENT).toEqual(changed);
  await home.database.query("drop publication onceward_history_results");
  await grant(home.connect(), { ...ORDER, key: "left out" });
  await expect.poll(types, PATIENT).toEqual([...changed, "publication_changed"]);
  withResults.signal("SIGTERM");
  expect(await withResults.ended).toMatchObject({ exit: 0 });
  // Read first: later lines of another tenant, and of a former one with the same name.
  const text = await readFile(join(home.folder, file), "utf8");
  const line = text.split("\n").find((each) => each.includes("order-2")) ?? "";
  const of = (source: string, year: string, tenant: string) =>
    line
      .replace(/"source":"[^"]*"/, `"source":"${source}"`)
      .replace(/"time":"\d+/, `"time":"${year}`)
      .replace(home.tenant.name, tenant);
  const others = [of("/former", "2001", home.tenant.name), of("/other", "2999", "other")];
  await writeFile(join(home.folder, "0.jsonl"), others.join("\n"));
  const told = await cliWith({}).json("records", "history", "charges", "order-2", "--from", home.folder);
  const reaches = expect.stringMatching(/^The export of .* reaches from/);
  expect(told).toMatchObject({
    tenants: [
      { source: "/former", notes: [reaches] },
      {
        notes: [...Array(3).fill(expect.stringMatching(/^Events from 20.* to 20.* may be missing/)), reaches],
      },
      { source: "/other", tenant: "other", notes: [reaches] },
    ],
    notes: [expect.stringMatching(/:3 is damaged/)],
  });
});

test("a transaction of 100,000 rows is exported, and a deleted tenant's", {
  timeout: 120_000,
}, async () => {
  const home = await startHome();
  const { database, tenant } = home;
  const exporting = await home.exporting();
  await grant(home.connect());
  const [row] = await database.query<{ columns: string }>(
    "select string_agg(attname, ', ') as columns from pg_attribute where attrelid = 'records'::regclass and attnum > 0 and attgenerated = '' and attname <> 'key'",
  );
  const copy = `select 'k-' || n, ${row?.columns} from records, generate_series(1, 100000) n`;
  await database.query(`insert into records (key, ${row?.columns}) ${copy}`);
  // To read the lines that often would take longer than to export them.
  await vi.waitUntil(async () => (await home.lines()).length === 100_002, { ...PATIENT, interval: 1000 });
  await home.end(exporting);
  const deletion =
    "insert into audit_events (tenant, tenant_id, actor, action, target, outcome, request_id) values ($1, $2, '', 'DeleteTenant', '', 'DONE', '')";
  await database.query(deletion, [tenant.name, tenant.id]);
  await database.query("delete from records");
  await database.query("delete from tenants where id = $1", [tenant.id]);
  const again = await home.exporting("--tenant", `${tenant.name}-${tenant.id}`);
  const deleted = async () => {
    const file = (await readdir(home.folder)).sort().at(-1) ?? "";
    return (await readFile(join(home.folder, file), "utf8")).includes("onceward.record.deleted");
  };
  await vi.waitUntil(deleted, PATIENT);
  await database.query("insert into tenants (name) values ($1)", [tenant.name]);
  const [other] = await database.query<{ id: number }>("select id from tenants where name = $1", [
    tenant.name,
  ]);
  const ambiguous = `${tenant.name}-${tenant.id}, ${tenant.name}-${other?.id}.`;
  await home.end(again);
  const refused = await home.exportTo("out", "--tenant", tenant.name).ended;
  expect(refused).toMatchObject({ exit: 1, stderr: expect.stringContaining(ambiguous) });
});

test("an export does not start with another pepper, or without its directory", async () => {
  const { settings } = await startHome();
  const start = ["export-history", "--to", "/absent"];
  expect(await runHere(start, settings)).toMatchObject(failed(1, /^--to must be a directory that exists/));
  const other = { ...settings, ONCEWARD_API_KEY_PEPPER: "another pepper, of 32 characters or more" };
  expect(await runHere(start, other)).toMatchObject(failed(1, /is not the pepper of this installation/));
});
