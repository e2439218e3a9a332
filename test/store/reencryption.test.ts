import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Keyring, NO_KEYS, parseKeyring } from "../../server/src/config/keyring.ts";
import type { Runner } from "../../server/src/database/pool.ts";
import {
  advanceEncryptionPass,
  beginEncryptionPass,
  readEncryptionPass,
} from "../../server/src/encryption/encryption-pass.ts";
import { countKeyUsage } from "../../server/src/encryption/key-usage.ts";
import { createRecordEncryption } from "../../server/src/encryption/record-encryption.ts";
import { reencryptPage } from "../../server/src/encryption/reencrypt-records.ts";
import { createReencryption } from "../../server/src/encryption/reencryption.ts";
import type { RecordValues } from "../../server/src/records/engine/record-values.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { bytes, complete, grant, lookUp, success } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { encryptionKeys } from "../support/servers/encryption.ts";
import { startRepeats } from "../support/servers/fast-path.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

type KeyIds = readonly (number | "none")[];

/** Starts a replica without a limit of the background task's rate. */
const startReplica = (database: TestDatabase, ...ids: KeyIds) =>
  startServerOfTest(database.url, {
    ...(ids.length > 0 && encryptionKeys(...ids)),
    ONCEWARD_ENCRYPTION_RATE: "100000",
  });

function encryptionWith(...ids: KeyIds): RecordValues {
  return createRecordEncryption(keyringOf(...ids), () => {});
}

function keyringOf(...ids: KeyIds): Keyring {
  return parseKeyring(encryptionKeys(...ids).ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
}

/** Completes records of a tenant, each with a checkpoint. */
async function completeMany(client: IdempotencyClient, count: number): Promise<void> {
  const ids = Array.from({ length: count }, (_, n) => ({ namespace: "charges", key: `old-${n}` }));
  const claims = await client.batch({ items: ids.map((value) => ({ request: { case: "claim", value } })) });
  const tokens = claims.items.map(({ response }) => {
    const outcome = response.case === "claim" ? response.value.outcome : undefined;
    return outcome?.case === "claimed" ? outcome.value.fencingToken : 0n;
  });
  const checkpoint = { name: "charged", state: bytes("state") };
  const each = <Value>(fieldsOf: (n: number) => Value) =>
    ids.map((id, n) => ({ ...id, fencingToken: tokens[n] ?? 0n, ...fieldsOf(n) }));
  await client.batch({
    items: each(() => ({ checkpoint })).map((value) => ({ request: { case: "extendLease", value } })),
  });
  await client.batch({
    items: each((n) => ({ result: { ...success(`paid ${n}`), metadata: { "10": "a", "2": "b" } } })).map(
      (value) => ({ request: { case: "complete", value } }),
    ),
  });
}

/** Expects that a client replays every record of `completeMany`. */
async function expectReplays(client: IdempotencyClient, count: number): Promise<void> {
  const replies = await client.batch({
    items: Array.from({ length: count }, (_, n) => ({
      request: { case: "claim", value: { namespace: "charges", key: `old-${n}` } },
    })),
  });
  expect(replies.items).toHaveLength(count);
  replies.items.forEach(({ response }, n) => {
    expect(response).toMatchObject({
      case: "claim",
      value: {
        outcome: {
          case: "completed",
          value: { result: { payload: bytes(`paid ${n}`), metadata: { "10": "a", "2": "b" } } },
        },
      },
    });
  });
}

/** Begins the next pass now; without this it begins a minute or a day after the last. */
async function passAgain(database: TestDatabase): Promise<void> {
  await database.query("update encryption_pass set next_page_at = now()");
}

const PATIENCE = { timeout: 60_000, interval: 50 };

test("records are encrypted, then re-encrypted under a new key by a mixed fleet; the old can go", async () => {
  const RECORDS = 600;
  const database = await createDatabaseOfTest();
  const pool = openStorePool(database);
  const tenant = await createTenant(database);
  const connect = async (...ids: KeyIds) => {
    const server = await startReplica(database, ...ids);
    return { server, client: connectClient(server, tenant.apiKey) };
  };
  const plain = await connect();
  await completeMany(plain.client, RECORDS);
  expect(await countKeyUsage(pool)).toEqual([{ keyId: null, results: RECORDS, checkpoints: RECORDS }]);

  const old = await connect(1, 2);
  await expect
    .poll(() => countKeyUsage(pool), PATIENCE)
    .toEqual([{ keyId: 1, results: RECORDS, checkpoints: RECORDS }]);
  await expectReplays(old.client, RECORDS);

  const repeats = startRepeats([old.client, old.client], "load");
  const both = await connect(2, 1);
  const mixed = startRepeats([both.client, old.client, both.client], "load");
  await expect
    .poll(async () => (await countKeyUsage(pool)).find(({ keyId }) => keyId === 2)?.checkpoints, PATIENCE)
    .toBe(RECORDS);
  await Promise.all([repeats.more(20), mixed.more(20)]);
  await expectReplays(old.client, RECORDS);
  await Promise.all([repeats.stop(), mixed.stop()]);

  // What the replica with the other order has written since is left to a later pass.
  await old.server.stop();
  const keyIds = async () => {
    await passAgain(database);
    return (await countKeyUsage(pool)).map(({ keyId }) => keyId);
  };
  await expect.poll(keyIds, PATIENCE).toEqual([2]);
  const unfinished = async () => {
    await passAgain(database);
    return (await readMetrics(both.server)).get("onceward_encryption_unfinished");
  };
  await expect.poll(unfinished, PATIENCE).toBe(0);
  await both.server.stop();
  const last = await connect(2);
  await expectReplays(last.client, RECORDS);
});

test("without a current key all records are decrypted, and a server without keys serves them", async () => {
  const database = await createDatabaseOfTest();
  const pool = openStorePool(database);
  const tenant = await createTenant(database);
  const encrypting = await startReplica(database, 1);
  await completeMany(connectClient(encrypting, tenant.apiKey), 250);
  await encrypting.stop();
  const decrypting = await startReplica(database, "none", 1);
  await expect
    .poll(() => countKeyUsage(pool), PATIENCE)
    .toEqual([{ keyId: null, results: 250, checkpoints: 250 }]);
  await complete(connectClient(decrypting, tenant.apiKey), success("plain"));
  await decrypting.stop();
  const without = connectClient(await startReplica(database), tenant.apiKey);
  await expectReplays(without, 250);
  expect(await lookUp(without)).toMatchObject({ result: { payload: bytes("plain") } });
});

describe("a page of records", () => {
  let database: TestDatabase;
  let server: TestServer;
  let tenant: TestTenant;
  let client: IdempotencyClient;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await startTestServer(database.url, {
      ...encryptionKeys(1),
      ONCEWARD_ENCRYPTION_RATE: "1",
    });
    // The server's own pass would change records back.
    const endPass = "update encryption_pass set next_page_at = 'infinity' returning 1";
    await vi.waitUntil(async () => (await database.query(endPass)).length === 1, { timeout: 60_000 });
    tenant = await createTenant(database, { max_result_bytes: 1_048_576 });
    client = connectClient(server, tenant.apiKey);
  });

  afterAll(async () => {
    await server?.stop();
    await database?.drop();
  });

  /** Completes records of a namespace with payloads of a size. */
  async function fill(namespace: string, count: number, payloadBytes: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const id = { namespace, key: `key-${n}` };
      const { fencingToken } = await grant(client, id);
      await client.complete({ ...id, fencingToken, result: success("x".repeat(payloadBytes)) });
    }
  }

  /** Returns the position before the namespace's first record. */
  const startOf = (namespace: string) => ({ tenantId: tenant.id, namespace, key: "" });

  const page = (encryption: RecordValues, namespace: string, maxRecords: number) =>
    openStorePool(database).transaction((transaction) =>
      reencryptPage(transaction, encryption, startOf(namespace), maxRecords),
    );

  const keyIdsOf = (namespace: string) =>
    database.query("select result_key_id as id from records where namespace = $1 order by key", [namespace]);

  test("a page changes no more records than its limit, and continues after the last one", async () => {
    await fill("limited", 5, 10);
    const changed = await page(encryptionWith(2, 1), "limited", 3);
    expect(changed).toMatchObject({ changed: 3, after: { namespace: "limited", key: "key-2" } });
    expect(await keyIdsOf("limited")).toEqual([2, 2, 2, 1, 1].map((id) => ({ id })));
  });

  test("a page holds a few mebibytes, however many records it may change", async () => {
    await fill("large", 7, 1_000_000);
    const changed = await page(encryptionWith(2, 1), "large", 100);
    expect(changed).toMatchObject({ changed: 4, after: { namespace: "large", key: "key-3" } });
  });

  test("records that cannot be decrypted stay as they are, and do not stop the page", async () => {
    await fill("unreadable", 3, 10);
    await database.query(
      "update records set result_payload = '\\x00' where namespace = 'unreadable' and key = 'key-1'",
    );
    const changed = await page(encryptionWith(2, 1), "unreadable", 3);
    expect(changed).toMatchObject({ changed: 2, unreadable: 1 });
    expect(await keyIdsOf("unreadable")).toEqual([2, 1, 2].map((id) => ({ id })));
    expect(await page(encryptionWith(3), "unreadable", 3)).toMatchObject({ changed: 0, unreadable: 3 });
  });

  test("a record that changes between its reading and its writing keeps the change", async () => {
    await fill("raced", 4, 10);
    const inBetween = `
      update records set
        fencing_token = fencing_token + case key when 'key-0' then 1 else 0 end,
        checkpoint_state = case key when 'key-1' then '\\x01'::bytea end,
        result_payload = case when key <> 'key-2' then result_payload end
       where namespace = 'raced'`;
    const racing = (transaction: Runner): Runner => ({
      async run(statement, parameters, operations) {
        if (statement.name === "store_encrypted_values") await database.query(inBetween);
        return await transaction.run(statement, parameters, operations);
      },
    });
    const changed = await openStorePool(database).transaction((transaction) =>
      reencryptPage(racing(transaction), encryptionWith(2, 1), startOf("raced"), 4),
    );
    expect(changed).toMatchObject({ changed: 2, skipped: 2 });
    expect(
      await database.query(
        "select result_key_id as id, result_payload is null as gone from records where namespace = 'raced' order by key",
      ),
    ).toEqual([
      { id: 1, gone: false },
      { id: 1, gone: false },
      { id: 2, gone: true },
      { id: 2, gone: false },
    ]);
  });

  test("a checkpointed claim completed between its reading and its writing keeps its result", async () => {
    const id = { namespace: "completed", key: "key-0" };
    const { fencingToken } = await grant(client, id);
    await client.extendLease({ ...id, fencingToken, checkpoint: { name: "charged", state: bytes("state") } });
    const racing = (transaction: Runner): Runner => ({
      async run(statement, parameters, operations) {
        if (statement.name === "store_encrypted_values")
          await client.complete({ ...id, fencingToken, result: success("paid") });
        return await transaction.run(statement, parameters, operations);
      },
    });
    const changed = await openStorePool(database).transaction((transaction) =>
      reencryptPage(racing(transaction), encryptionWith(2, 1), startOf("completed"), 1),
    );
    expect(changed).toMatchObject({ changed: 0, skipped: 1 });
    expect((await client.lookup(id)).record).toMatchObject({ result: { payload: bytes("paid") } });
  });

  test("a replica that starts repeats a pass that ended with unreadable records, and no other", async () => {
    const pool = openStorePool(database);
    const begin = async (unreadable: number, finished: string | null) => {
      await database.query(
        "update encryption_pass set key_id = 2, records_examined = 7, records_unreadable = $1, finished_at = $2",
        [unreadable, finished],
      );
      await beginEncryptionPass(pool, 2);
      return await readEncryptionPass(pool);
    };
    expect(await begin(0, "now")).toMatchObject({ examined: 7, finished: true });
    expect(await begin(1, null)).toMatchObject({ examined: 7, unreadable: 1 });
    expect(await begin(1, "now")).toMatchObject({ examined: 0, unreadable: 0, finished: false });
  });

  test("a pass that changed records is followed after a minute, and another one after a day", async () => {
    const pool = openStorePool(database);
    await database.query(
      "update encryption_pass set key_id = 2, finished_at = null, records_changed = 0, records_skipped = 0",
    );
    const nothing = { examined: 1, changed: 0, skipped: 0, unreadable: 0 };
    const finish = async () => {
      await advanceEncryptionPass(pool, { ...nothing, after: undefined }, 0);
      const [pass] = await database.query<{ pause: number }>(
        "select extract(epoch from next_page_at - finished_at)::int as pause from encryption_pass",
      );
      return pass?.pause;
    };
    await advanceEncryptionPass(pool, { ...nothing, changed: 1, after: startOf("charges") }, 0);
    expect(await finish()).toBe(60);
    expect(await finish()).toBe(86_400);
  });

  test("a pass continues where another replica left it, within its rate", async () => {
    await database.query("delete from records");
    await fill("rated", 30, 10);
    await database.query(
      `update encryption_pass set key_id = 2, finished_at = null, next_page_at = now(), records_examined = 7, records_changed = 0,
         after_tenant_id = $1, after_namespace = 'rated', after_key = 'key-19'`,
      [tenant.id],
    );
    const pool = openStorePool(database);
    const task = createReencryption({
      pool,
      encryption: encryptionWith(2, 1),
      metrics: createMetrics("1"),
      recordsPerSecond: 10,
      onFailed(error) {
        throw error;
      },
    });
    task.start();
    onTestFinished(() => task.stop());
    await expect.poll(async () => (await readEncryptionPass(pool))?.finished, PATIENCE).toBe(true);
    // After "key-19" there are eighteen keys, each in a page of its own.
    const pass = await readEncryptionPass(pool);
    expect(pass).toMatchObject({ keyId: 2, changed: 18, unreadable: 0, skipped: 0 });
    expect(pass?.examined).toBe(7 + 18);
    const [times] = await database.query<{ took: number }>(
      "select extract(epoch from next_page_at - interval '1 minute' - started_at)::float8 as took from encryption_pass",
    );
    expect(times?.took).toBeGreaterThan(17 / 10);
  });
});
