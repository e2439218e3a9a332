import { afterEach, beforeEach, expect, test } from "vitest";
import { Rejected } from "../../server/src/domain/operation.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import { createRecordStore, type RecordStore } from "../../server/src/records/record-store.ts";
import { connectAdmin } from "../support/calls/admin.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { claimCommand } from "../support/calls/domain.ts";
import { describeError } from "../support/calls/errors.ts";
import { endLeases } from "../support/calls/records.ts";
import { grant } from "../support/calls/verbs.ts";
import { setClockAhead, useSettableClock } from "../support/database/clock.ts";
import { openStorePool } from "../support/database/connections.ts";
import {
  createTestDatabase,
  type OpenDatabase,
  openNodes,
  type TestDatabase,
} from "../support/database/database.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const PATIENCE = { timeout: 30_000, interval: 20 };
const HOUR_MIN = 60;

let database: TestDatabase;
/** The databases of all nodes, on a Citus: each has a clock. */
let nodes: readonly OpenDatabase[];
let tenant: TestTenant;

beforeEach(async () => {
  database = await createTestDatabase();
  nodes = openNodes(database);
  for (const node of nodes) await useSettableClock(node);
  tenant = await createTenant(database);
});

afterEach(async () => {
  for (const node of nodes) await node.close();
  await database.drop();
});

async function setClocksAhead(minutes: number): Promise<void> {
  await Promise.all(nodes.map((node) => setClockAhead(node, minutes)));
}

const startReplica = () => startServerOfTest(database.url, {}, { heartbeatMs: 50 });

const idOf = (key: string) => ({ namespace: "charges", key });

/** Returns the versions of the replicas' rows, each of which a heartbeat changes. */
async function readBeats(): Promise<readonly string[]> {
  const rows = await database.query<{ beat: string }>("select id || ' ' || xmin as beat from replicas");
  return rows.map(({ beat }) => beat);
}

/** Waits for a heartbeat of each replica that began after the call. */
async function untilBeaten(): Promise<void> {
  for (let beats = 0; beats < 2; beats++) {
    const before = new Set(await readBeats());
    await expect.poll(async () => (await readBeats()).some((beat) => before.has(beat)), PATIENCE).toBe(false);
  }
}

/**
 * Deletes a record that no claim has, as a sweep does. A sweep comes minutes after the record's last claim, so every
 * replica has stored and read a floor meanwhile.
 */
async function sweep(key: string, token: bigint): Promise<void> {
  const readFloor = async () => {
    const [row] = await database.query<{ floor: string }>("select token_floor as floor from installation");
    return BigInt(row?.floor ?? 0);
  };
  await expect.poll(readFloor, PATIENCE).toBeGreaterThanOrEqual(token);
  await untilBeaten();
  await database.query("delete from records where tenant_id = $1 and key = $2", [tenant.id, key]);
}

/** Expects that a call was refused because its lease had ended, or because the clock was set or the row is contended. */
function expectRefusal(error: unknown): undefined {
  const { reason } = describeError(error);
  expect(["CLAIM_SUPERSEDED", "RECORD_NOT_FOUND", "RECORD_CONTENDED", "DATABASE_UNAVAILABLE"]).toContain(
    reason,
  );
}

/** Claims a key at a replica until it is granted: a clock that was set keeps records for a while. */
async function claimUntilGranted(client: IdempotencyClient, key: string): Promise<bigint> {
  for (;;) {
    const reply = await client.claim(idOf(key)).catch(expectRefusal);
    if (reply?.outcome.case === "claimed") return reply.outcome.value.fencingToken;
    await endLeases(database, tenant, key);
  }
}

test("no token falls while the clock is set back and forward under claims and sweeps", {
  timeout: 120_000,
}, async () => {
  const servers = [await startReplica(), await startReplica()];
  const clients = servers.map((server) => connectClient(server, tenant.apiKey));
  const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const admin = connectAdmin(servers[0] as TestServer, adminKey);
  const ends: readonly ((key: string, token: bigint, client: IdempotencyClient) => Promise<unknown>)[] = [
    (key) => endLeases(database, tenant, key),
    (key, fencingToken, client) => client.release({ ...idOf(key), fencingToken }).catch(expectRefusal),
    (key) =>
      admin
        .resolveRecord({ ...idOf(key), resolution: { case: "forget", value: {} }, reason: "test" })
        .catch(expectRefusal),
    sweep,
  ];
  let lives = 0;
  async function work(worker: number): Promise<void> {
    const key = `order-${worker}`;
    let last = 0n;
    for (let round = 0; round < 16; round++) {
      const client = clients[(worker + round) % 2] as IdempotencyClient;
      const token = await claimUntilGranted(client, key);
      expect(token).toBeGreaterThan(last);
      last = token;
      lives++;
      await ends[(worker + round) % ends.length]?.(key, token, client);
    }
  }
  let isWorking = true;
  async function moveClock(): Promise<void> {
    for (let move = 0; isWorking; move++) {
      await setClocksAhead([0, -HOUR_MIN, HOUR_MIN][move % 3] ?? 0);
      await untilBeaten();
    }
  }
  const moving = moveClock();
  await Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker))).finally(() => {
    isWorking = false;
  });
  await moving;
  expect(lives).toBe(8 * 16);
});

test("a replica started after the clock was set back gives out higher tokens than before", async () => {
  const before = await startReplica();
  const { fencingToken } = await grant(connectClient(before, tenant.apiKey), idOf("order-1"));
  await sweep("order-1", fencingToken);
  await before.stop();
  await setClocksAhead(-HOUR_MIN);
  const after = connectClient(await startReplica(), tenant.apiKey);
  expect((await grant(after, idOf("order-1"))).fencingToken).toBeGreaterThan(fencingToken);
});

/** Each claims keys by another statement, and returns the highest token. */
const STATEMENTS: readonly [string, (store: RecordStore, keys: readonly string[]) => Promise<bigint>][] = [
  ["claim_record", (store, [key = ""]) => claimAll(store, [key])],
  ["claim_records", claimAll],
  [
    "take_over_records",
    async (store, keys) => {
      await claimAll(createRecordStore(openStorePool(database), UNLIMITED), keys);
      await endLeases(database, tenant);
      return await claimAll(store, keys);
    },
  ],
];

async function claimAll(store: RecordStore, keys: readonly string[]): Promise<bigint> {
  const commands = keys.map((key) =>
    claimCommand({ id: { tenantId: tenant.id, namespace: "charges", key } }),
  );
  const outcomes = await store.claim(commands, { atMs: Number.POSITIVE_INFINITY, cancelled: false });
  return outcomes
    .map((outcome) => {
      if (outcome instanceof Rejected || outcome.kind !== "claimed") throw new Error("not granted");
      return outcome.fencingToken;
    })
    .reduce((highest, token) => (token > highest ? token : highest));
}

test.each(STATEMENTS)(
  "after %s no token falls, also if the clock is set back before a heartbeat",
  async (name, claim) => {
    const ran: string[] = [];
    const pool = openStorePool(database);
    const store = createRecordStore(
      {
        ...pool,
        run(statement, parameters, operations) {
          ran.push(statement.name);
          return pool.run(statement, parameters, operations);
        },
      },
      UNLIMITED,
    );
    const token = await claim(store, ["order-1", "order-2"]);
    expect(ran).toContain(name);
    await setClocksAhead(-HOUR_MIN);
    await database.query("delete from records where tenant_id = $1", [tenant.id]);
    expect(await claimAll(store, ["order-1"])).toBeGreaterThan(token);
  },
);

test("a token is the microsecond of the database's clock", async () => {
  const client = connectClient(await startReplica(), tenant.apiKey);
  const readClock = async () => {
    const [row] = await database.query<{ us: string }>(
      "select (date_part('epoch', clock_timestamp()) * 1000000)::bigint as us",
    );
    return BigInt(row?.us ?? 0);
  };
  const from = await readClock();
  const { fencingToken } = await grant(client, idOf("order-1"));
  expect(fencingToken).toBeGreaterThanOrEqual(from);
  // The first of its statement.
  expect(fencingToken).toBeLessThanOrEqual((await readClock()) + 1n);
});
