import { randomUUID } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { STORED_BYTES } from "../../server/src/database/tenants/tenant-totals.ts";
import { encodeMetadata } from "../../server/src/records/result-bytes.ts";
import { digestResult } from "../../server/src/records/result-digest.ts";
import { connectAdmin, createWorld, type TenantAdminClient } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ageRecords, endLeases, granted } from "../support/calls/records.ts";
import { completeWith, FORGET, resolve } from "../support/calls/resolutions.ts";
import { bytes, complete, grant, lookUp, ORDER, success } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { encryptionKeys, keyText } from "../support/servers/encryption.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

// A replica without the key of the last pass would not start.
beforeEach(() => database.query("delete from encryption_pass"));

type Settings = Readonly<Record<string, string>>;

/** Starts a replica, whose background task changes at most one record per second. */
const startReplica = (settings: Settings = encryptionKeys(1)) =>
  startServerOfTest(database.url, {
    ...settings,
    ONCEWARD_LOG_LEVEL: "error",
    ONCEWARD_ENCRYPTION_RATE: "1",
  });

/** Starts a replica with a new tenant's clients, and returns a function that connects the tenant to others. */
async function startWithTenant(settings?: Settings) {
  const server = await startReplica(settings);
  const { tenant, caller, admin, adminKey } = await createWorld(database, server).administeredTenant({
    max_result_bytes: 200_000,
  });
  const onReplica = async (others: Settings) => connectClient(await startReplica(others), tenant.apiKey);
  return { server, tenant, caller, admin, adminKey, onReplica };
}

const RESULT = {
  kind: Result_Kind.SUCCESS,
  payload: bytes("paid"),
  contentType: "text/plain",
  metadata: { "X-Trace": "a", "2": "b", "10": "c" },
};
const CHECKPOINT = { name: "charged", state: bytes("at provider") };

/** Returns all rows of all tables as text, byte columns as they are and decoded from base64. */
async function dump(): Promise<Buffer> {
  const tables = await database.query<{ name: string }>(
    "select quote_ident(tablename) as name from pg_tables where schemaname = 'public'",
  );
  const parts: Buffer[] = [];
  for (const { name } of tables) {
    for (const row of await database.query(`select * from ${name}`)) {
      for (const value of Object.values(row)) {
        parts.push(Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value) ?? ""));
        if (typeof value === "string") parts.push(Buffer.from(value, "base64url"));
      }
    }
  }
  return Buffer.concat(parts);
}

const WAL_PAGE_BYTES = 8192;
/** Length of the header of a page, except of the first one of a file. */
const WAL_PAGE_HEADER_BYTES = 24;

/** Returns the files of the write-ahead log that changed since a time, without the headers that cut rows in two. */
async function readLog(sinceMs: number): Promise<Buffer> {
  const [row] = await database.query<{ dir: string }>("select current_setting('data_directory') as dir");
  const dir = join(row?.dir ?? "", "pg_wal");
  const parts: Buffer[] = [];
  for (const name of await readdir(dir)) {
    const file = join(dir, name);
    const about = await stat(file);
    if (!about.isFile() || about.mtimeMs < sinceMs) continue;
    const content = await readFile(file);
    for (let at = 0; at < content.length; at += WAL_PAGE_BYTES) {
      parts.push(content.subarray(at + WAL_PAGE_HEADER_BYTES, at + WAL_PAGE_BYTES));
    }
  }
  return Buffer.concat(parts);
}

/** Returns the log once all that was committed so far is in it: the tests' Postgres writes it after the commit. */
async function readWholeLog(sinceMs: number): Promise<Buffer> {
  const marker = `marker-${randomUUID()}`;
  await database.query("select pg_logical_emit_message(true, 'test', $1::text)", [marker]);
  let log: Buffer = Buffer.alloc(0);
  await expect
    .poll(async () => {
      log = await readLog(sinceMs);
      return log.includes(marker);
    })
    .toBe(true);
  return log;
}

test.each([
  ["with a key, no result, digest or checkpoint is", encryptionKeys(1), []],
  [
    "without a key, every result, digest and checkpoint is",
    {},
    ["digest", "metadata", "payload", "resolved", "state"],
  ],
])("%s in plain form in the tables and the write-ahead log", async (_, settings, expected) => {
  // The times of files have a coarse clock.
  const sinceMs = Date.now() - 5000;
  const [payload, metadata, state, resolved] = Array.from({ length: 4 }, () => `canary-${randomUUID()}`) as [
    ...[string, string, string, string],
  ];
  const { caller, admin } = await startWithTenant(settings);
  const claim = await grant(caller);
  const checkpoint = { name: "charged", state: bytes(state) };
  await caller.extendLease({ ...ORDER, fencingToken: claim.fencingToken, checkpoint });
  const result = { ...success(payload), metadata: { trace: metadata } };
  await caller.complete({ ...ORDER, fencingToken: claim.fencingToken, result });
  await grant(caller, { key: "resolved" });
  await resolve(admin, completeWith(resolved), { key: "resolved" });

  const digest = digestResult({
    kind: "success",
    payload: bytes(payload),
    contentType: "",
    metadataJson: encodeMetadata(result.metadata),
  });
  const stored = await dump();
  const plain = Object.entries({ digest, metadata, payload, resolved, state });
  expect(plain.flatMap(([name, text]) => (stored.includes(text) ? [name] : []))).toEqual(expected);
  const log = await readWholeLog(sinceMs);
  for (const canary of [payload, metadata, state, resolved])
    expect(log.includes(canary)).toBe(expected.length > 0);
});

test("claims, lookups and administrators read encrypted values, also with another first key", async () => {
  const { caller, admin, onReplica } = await startWithTenant(encryptionKeys(1, 2));
  const other = await onReplica(encryptionKeys(2, 1));
  const { fencingToken } = await grant(caller);
  await other.extendLease({ ...ORDER, fencingToken, checkpoint: CHECKPOINT });
  expect(await lookUp(caller)).toMatchObject({ checkpoint: CHECKPOINT });
  await caller.complete({ ...ORDER, fencingToken, result: RESULT });
  for (const client of [caller, other]) {
    const { outcome } = await client.claim(ORDER);
    expect(outcome).toMatchObject({ case: "completed", value: { result: RESULT } });
    expect(await lookUp(client)).toMatchObject({ checkpoint: CHECKPOINT, result: RESULT });
    // A repeat is compared by the digest.
    const again = await client.complete({ ...ORDER, fencingToken, result: RESULT });
    expect(again.alreadyCompleted).toBe(true);
    expect(
      await errorOf(client.complete({ ...ORDER, fencingToken, result: success("other") })),
    ).toMatchObject({
      reason: "ALREADY_COMPLETED",
    });
  }
  expect((await admin.getRecord(ORDER)).record).toMatchObject({ checkpoint: CHECKPOINT, result: RESULT });
  const listed = (await admin.listRecords({})).records;
  expect(listed).toMatchObject([
    { key: ORDER.key, checkpoint: { name: "charged" }, result: { contentType: "text/plain" } },
  ]);
});

test("a large result and an empty one are replayed byte for byte", async () => {
  const { caller, onReplica } = await startWithTenant();
  const sizes = [0, 65_508, 65_509, 65_536, 65_537, 150_000];
  for (const size of sizes) {
    const id = { ...ORDER, key: `of ${size}` };
    const { fencingToken } = await grant(caller, id);
    const result = { kind: Result_Kind.SUCCESS, payload: new Uint8Array(Buffer.alloc(size, "x")) };
    await caller.complete({ ...id, fencingToken, result });
  }
  const other = await onReplica(encryptionKeys(1));
  const replies = await other.batch({
    items: sizes.map((size) => ({ request: { case: "claim", value: { ...ORDER, key: `of ${size}` } } })),
  });
  // Only whether they are equal: a comparison of large buffers takes minutes when it fails.
  const areEqual = replies.items.map(({ response }, index) => {
    const outcome = response.case === "claim" ? response.value.outcome : undefined;
    const payload = outcome?.case === "completed" ? outcome.value.result?.payload : undefined;
    return payload !== undefined && Buffer.alloc(sizes[index] ?? 0, "x").equals(payload);
  });
  expect(areEqual).toEqual(sizes.map(() => true));
});

test("a claim that takes over has the checkpoint of the one before, under any key", async () => {
  const { tenant, caller, onReplica } = await startWithTenant(encryptionKeys(1));
  const other = await onReplica(encryptionKeys(2, 1));
  const { fencingToken } = await grant(caller);
  await caller.extendLease({ ...ORDER, fencingToken, checkpoint: CHECKPOINT });
  await endLeases(database, tenant);
  expect(granted(await other.claim(ORDER))).toMatchObject({ attempt: 2, checkpoint: CHECKPOINT });
  await endLeases(database, tenant);
  expect(granted(await caller.claim(ORDER))).toMatchObject({ attempt: 3, checkpoint: CHECKPOINT });
});

test.each([
  ["was forgotten", (_: TestTenant, admin: TenantAdminClient) => resolve(admin, FORGET)],
  ["ended", (tenant: TestTenant) => ageRecords(database, tenant, 10 * 365 * 86_400)],
])("a key whose record %s begins without values and their key ids", async (_, end) => {
  const { tenant, caller, admin } = await startWithTenant();
  const { fencingToken } = await grant(caller);
  await caller.extendLease({ ...ORDER, fencingToken, checkpoint: CHECKPOINT });
  await caller.complete({ ...ORDER, fencingToken, result: RESULT });
  await end(tenant, admin);
  const claim = await grant(caller);
  expect(claim.attempt).toBe(1);
  expect(claim.checkpoint).toBeUndefined();
  const values = await database.query(
    `select checkpoint_name, checkpoint_state, checkpoint_key_id, result_kind, result_digest, result_payload,
            result_content_type, result_metadata, result_key_id from records where tenant_id = $1`,
    [tenant.id],
  );
  expect(values.map((row) => new Set(Object.values(row)))).toEqual([new Set([null])]);
});

test("records from before encryption was configured stay readable", async () => {
  const { caller, onReplica } = await startWithTenant({});
  const { fencingToken } = await complete(caller, success("plain"));
  const encrypting = await onReplica(encryptionKeys(1));
  expect((await encrypting.claim(ORDER)).outcome).toMatchObject({
    value: { result: { payload: bytes("plain") } },
  });
  const again = { ...ORDER, fencingToken, result: success("plain") };
  expect((await encrypting.complete(again)).alreadyCompleted).toBe(true);
});

const KEY_MISSING = { cause: "key_missing", encryption_key: "1" };
const NOT_AUTHENTIC = { cause: "not_authentic", encryption_key: "1" };

test.each([
  ["without the record's key", encryptionKeys("none", 2), KEY_MISSING],
  ["with another key of the same id", { ONCEWARD_ENCRYPTION_KEYS: keyText(1, "another") }, NOT_AUTHENTIC],
])(
  "a server %s refuses what needs the value, grants nothing, and serves other records",
  async (_, settings, metadata) => {
    const { tenant, caller } = await startWithTenant(encryptionKeys(1));
    const { fencingToken } = await complete(caller, RESULT);
    const held = await grant(caller, { key: "held" });
    await caller.extendLease({
      ...ORDER,
      key: "held",
      fencingToken: held.fencingToken,
      checkpoint: CHECKPOINT,
    });
    await endLeases(database, tenant, "held");
    await grant(caller, { key: "busy" });

    const server = await startReplica(settings);
    const client = connectClient(server, tenant.apiKey);
    const refusal = { code: "FailedPrecondition", reason: "RECORD_UNREADABLE", metadata, retryable: false };
    expect(await errorOf(client.claim(ORDER))).toMatchObject(refusal);
    expect(await errorOf(client.lookup(ORDER))).toMatchObject(refusal);
    expect(await errorOf(client.complete({ ...ORDER, fencingToken, result: RESULT }))).toMatchObject(refusal);
    // The claim would take over, with the checkpoint.
    expect(await errorOf(client.claim({ ...ORDER, key: "held" }))).toMatchObject(refusal);
    const batch = await client.batch({
      items: ["held", "busy", "fresh"].map((key) => ({
        request: { case: "claim", value: { ...ORDER, key } },
      })),
    });
    expect(batch.items.map(({ response }) => response.case)).toEqual(["error", "claim", "claim"]);
    const rows = await database.query(
      "select key, attempt, state from records where tenant_id = $1 and key not in ('busy', 'fresh') order by key",
      [tenant.id],
    );
    expect(rows).toEqual([
      { key: "held", attempt: 1, state: 1 },
      { key: ORDER.key, attempt: 1, state: 2 },
    ]);
    const counted = await readMetrics(server);
    expect(
      counted.get(`onceward_unreadable_records_total{cause="${metadata.cause}"}`),
    ).toBeGreaterThanOrEqual(5);
    expect(server.log).toContainEqual(
      expect.objectContaining({ msg: "a record cannot be decrypted; calls that need it fail", keyId: 1 }),
    );
  },
);

test("an administrator lists, sees refused and forgets a record that cannot be decrypted", async () => {
  const { caller, tenant, adminKey } = await startWithTenant(encryptionKeys(1));
  await complete(caller, RESULT);
  const eager = { ONCEWARD_USAGE_FLUSH: "100ms" };
  const world = createWorld(database, await startReplica({ ...encryptionKeys("none", 2), ...eager }));
  const admin = connectAdmin(world.server, adminKey);
  const refused = connectClient(world.server, tenant.apiKey).claim(ORDER);
  expect(await errorOf(refused)).toMatchObject({ reason: "RECORD_UNREADABLE" });
  await expect.poll(() => admin.getKeyHistory(ORDER), { interval: 20 }).toMatchObject({ unreadable: 1n });
  expect((await admin.listRecords({})).records).toMatchObject([{ key: ORDER.key }]);
  expect(await errorOf(admin.getRecord(ORDER))).toMatchObject({ reason: "RECORD_UNREADABLE" });
  await resolve(admin, FORGET);
  expect(await grant(connectClient(world.server, tenant.apiKey))).toMatchObject({ attempt: 1 });
});

test("a replica without the last pass's key does not start, unless its list begins with none", async () => {
  await startReplica(encryptionKeys(1));
  const passIs = (keyId: number | null) =>
    expect.poll(() => database.query("select key_id from encryption_pass")).toEqual([{ key_id: keyId }]);
  await passIs(1);
  for (const settings of [{}, encryptionKeys(2)]) {
    await expect(startReplica(settings)).rejects.toThrow(
      "ONCEWARD_ENCRYPTION_KEYS lacks key 1, under which this installation's results are encrypted",
    );
  }
  await passIs(1);
  await startReplica(encryptionKeys("none", 2));
  await passIs(null);
  // Nothing is encrypted from here on, so that no key is lacking.
  await startReplica({});
});

/** Exchanges a column of two rows. */
const SWAP = (column: string) => `
update records r set ${column} = other.${column}
  from records other
 where r.tenant_id in ($1, $3) and other.tenant_id in ($1, $3) and r.key in ($2, $4) and other.key in ($2, $4)
   and (r.tenant_id, r.key) <> (other.tenant_id, other.key)`;

test.each(["result_payload", "result_metadata", "result_digest"])(
  "a %s that was moved to another record or tenant is refused, never replayed",
  async (column) => {
    const { server, tenant, caller } = await startWithTenant();
    const neighbour = await createTenant(database);
    const theirs = connectClient(server, neighbour.apiKey);
    for (const [client, key] of [
      [caller, "a"],
      [caller, "b"],
      [caller, "c"],
      [theirs, "c"],
    ] as const) {
      const { fencingToken } = await grant(client, { key });
      await client.complete({ ...ORDER, key, fencingToken, result: RESULT });
    }
    const refusal = { reason: "RECORD_UNREADABLE", metadata: NOT_AUTHENTIC };
    await database.query(SWAP(column), [tenant.id, "a", tenant.id, "b"]);
    for (const key of ["a", "b"])
      expect(await errorOf(caller.claim({ ...ORDER, key }))).toMatchObject(refusal);
    await database.query(SWAP(column), [tenant.id, "c", neighbour.id, "c"]);
    for (const client of [caller, theirs])
      expect(await errorOf(client.claim({ ...ORDER, key: "c" }))).toMatchObject(refusal);
    // Back in their places, the values are readable again.
    await database.query(SWAP(column), [tenant.id, "a", tenant.id, "b"]);
    expect((await caller.claim({ ...ORDER, key: "a" })).outcome).toMatchObject({ value: { result: RESULT } });
  },
);

test("a checkpoint in the place of a result is refused, also in the same row", async () => {
  const { tenant, caller } = await startWithTenant();
  const { fencingToken } = await grant(caller);
  await caller.extendLease({ ...ORDER, fencingToken, checkpoint: CHECKPOINT });
  await caller.complete({ ...ORDER, fencingToken, result: RESULT });
  await database.query("update records set result_payload = checkpoint_state where tenant_id = $1", [
    tenant.id,
  ]);
  expect(await errorOf(caller.claim(ORDER))).toMatchObject({ metadata: NOT_AUTHENTIC });
});

test("quotas of stored bytes count the same with and without encryption", async () => {
  const counted = await Promise.all(
    [{}, encryptionKeys(1)].map(async (settings) => {
      const { tenant, caller } = await startWithTenant(settings);
      for (const size of [0, 1, 2, 3, 1000]) {
        const id = { ...ORDER, key: `of ${size}` };
        const { fencingToken } = await grant(caller, id);
        await caller.extendLease({ ...id, fencingToken, checkpoint: CHECKPOINT });
        const result = { ...success("x".repeat(size)), metadata: size === 0 ? {} : { m: "é".repeat(size) } };
        await caller.complete({ ...id, fencingToken, result });
      }
      return database.query(
        `select r.key, ${STORED_BYTES} as bytes from records r where r.tenant_id = $1 order by r.key`,
        [tenant.id],
      );
    }),
  );
  expect(counted[0]).toHaveLength(5);
  expect(counted[1]).toEqual(counted[0]);
});
