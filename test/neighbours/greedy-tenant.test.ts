import { randomUUID } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { connectAdmin, type TenantAdminClient } from "../support/calls/admin.ts";
import { type ItemRequest, runBatch } from "../support/calls/batches.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER, seconds } from "../support/calls/verbs.ts";
import { callHeaders, openUnaryConnection } from "../support/network/unary-connection.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createApiKey, createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

// A greedy tenant loads each shared resource while another tenant calls. The other tenant must be served
// before the greedy tenant's requests are done, in a number of statements that does not depend on their
// number.

const NAMESPACE = "charges";
const PATIENCE = { timeout: 30_000, interval: 20 };

interface Neighbour {
  readonly tenant: TestTenant;
  readonly caller: IdempotencyClient;
  readonly admin: TenantAdminClient;
}

const { database, server } = useServer();
let greedy: Neighbour;
let modest: Neighbour;

beforeAll(async () => {
  [greedy, modest] = [await newNeighbour(), await newNeighbour()];
  await grant(modest.caller, { key: "connected" });
  await modest.admin.getTenant({});
});

async function newNeighbour(): Promise<Neighbour> {
  const tenant = await createTenant(database);
  const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  return {
    tenant,
    caller: connectClient(server, tenant.apiKey),
    admin: connectAdmin(server, adminKey),
  };
}

/** Calls in flight, and the number of them that have ended. */
function counted(calls: readonly Promise<unknown>[]) {
  let settled = 0;
  const all = calls.map((call) => call.finally(() => settled++));
  return { all: Promise.allSettled(all), settled: () => settled, count: calls.length };
}

function claimsOf(keys: readonly string[], namespace = (_: string) => NAMESPACE): ItemRequest[] {
  return keys.map((key) => ({
    case: "claim",
    value: { namespace: namespace(key), key },
  }));
}

function keysOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
}

/** Gives the greedy tenant records that are in progress, with the keys `key-1` and so on. */
async function fillRecords(namespace: string, count: number): Promise<void> {
  await database.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
       accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at,
       lease_expires_at, expires_at, sweep_at, claim_id, owner)
     select $1, $2, 'key-' || n, 1, 1, 1, false, false, 1000, 86400, 86400, 86400, now(), now(),
            now() + interval '1 hour', now() + interval '1 day', now() + interval '1 day', '', ''
       from generate_series(1, $3::int) n`,
    [greedy.tenant.id, namespace, count],
  );
}

async function metric(name: string): Promise<number> {
  return (await readMetrics(server)).get(name) ?? 0;
}

test("claims of another tenant are granted while 10,000 of one tenant are queued", async () => {
  const batches = counted(
    Array.from({ length: 10 }, (_, i) => runBatch(greedy.caller, claimsOf(keysOf(`batch-${i}`, 1000)))),
  );
  for (let claim = 0; claim < 10; claim++) await grant(modest.caller, { key: randomUUID() });
  expect(batches.settled()).toBeLessThan(batches.count);
  for (const { status } of await batches.all) expect(status).toBe("fulfilled");
});

test("another tenant's claims and changes are made while one tenant previews", async () => {
  await fillRecords("previewed", 20_000);
  const leaving = new AbortController();
  const request = {
    namespace: { name: "previewed", policy: { keyRetention: seconds(60) } },
    allowMissing: true,
    validateOnly: true,
  };
  const preview = () => greedy.admin.updateNamespace(request, { signal: leaving.signal });
  const previews = Array.from({ length: 30 }, preview);
  const pages = () => metric('onceward_store_duration_seconds_count{statement="preview_restamp"}');
  await expect.poll(pages, PATIENCE).toBeGreaterThan(0);
  const before = await pages();
  await modest.admin.updateNamespace({ namespace: { name: NAMESPACE }, allowMissing: true });
  await grant(modest.caller, { key: randomUUID() });
  expect((await modest.admin.listRecords({ namespace: NAMESPACE })).records.length).toBeGreaterThan(0);
  expect((await modest.admin.listAuditEvents({})).events.length).toBeGreaterThan(0);
  // Three statements of the other tenant ran between these.
  expect((await pages()) - before).toBeLessThan(20);
  leaving.abort();
  await Promise.allSettled(previews);
});

test("another tenant's job is done before one tenant's many jobs", async () => {
  await fillRecords("restamped", 20_000);
  for (let job = 0; job < 15; job++) {
    const namespace = { name: "restamped", policy: { keyRetention: seconds(60_000 + job) } };
    await greedy.admin.updateNamespace({ namespace, allowMissing: true, applyToExisting: true });
  }
  await database.query("update record_jobs set starts_at = now() - interval '1 minute'");
  const namespace = "forgotten";
  await modest.admin.updateNamespace({ namespace: { name: namespace }, allowMissing: true });
  await grant(modest.caller, { namespace });
  const { job } = await modest.admin.deleteNamespace({ name: namespace, force: true });
  const finishedAt = async () => (await modest.admin.getRecordJob({ id: job?.id ?? 0n })).job?.finishedAt;
  await expect.poll(finishedAt, PATIENCE).toBeDefined();
  const [row] = await database.query<{ left: number }>(
    "select count(*)::int as left from record_jobs where tenant_id = $1 and finished_at is null",
    [greedy.tenant.id],
  );
  expect(row?.left).toBeGreaterThan(10);
  await database.query("update record_jobs set finished_at = now() where finished_at is null");
});

test("another tenant's waiter is woken within two polls while one tenant waits for 3,000 keys", async () => {
  const namespace = "awaited";
  await fillRecords(namespace, 3000);
  const headers = callHeaders("Claim", greedy.tenant.apiKey);
  for (let first = 1; first < 3000; first += 500) {
    const connection = await openUnaryConnection(server.grpcPort);
    onTestFinished(() => connection.close());
    for (const n of Array.from({ length: 500 }, (_, i) => first + i)) {
      const claim = create(ClaimRequestSchema, { namespace, key: `key-${n}`, wait: seconds(60) });
      // They wait until the connection is closed.
      connection.call(headers, toBinary(ClaimRequestSchema, claim)).catch(() => {});
    }
  }
  const { key } = { ...ORDER, key: randomUUID() };
  await grant(modest.caller, { key });
  const woken = modest.caller.claim({ ...ORDER, key, wait: seconds(60) });
  await untilWaiting(server, 3001, 15_000);
  const looks = () => metric('onceward_store_duration_seconds_count{statement="find_resolved_records"}');
  const before = await looks();
  // As on another replica: only a poll finds it.
  await database.query("update records set lease_expires_at = now() where tenant_id = $1 and key = $2", [
    modest.tenant.id,
    key,
  ]);
  expect((await woken).outcome.case).toBe("claimed");
  expect((await looks()) - before).toBeLessThanOrEqual(2);
});

test("another tenant's denial is audited while one tenant is denied 300 times", async () => {
  const denied = connectAdmin(server, greedy.tenant.apiKey);
  const denials = Array.from({ length: 300 }, () => errorOf(denied.updateTenant({})));
  const reason = { reason: "ROLE_DENIED" };
  expect(await errorOf(connectAdmin(server, modest.tenant.apiKey).updateTenant({}))).toMatchObject(reason);
  const written = async () =>
    (await modest.admin.listAuditEvents({ action: "UpdateTenant" })).events.map(({ denial }) => denial);
  await expect.poll(written, PATIENCE).toEqual(["ROLE_DENIED"]);
  for (const error of await Promise.all(denials)) expect(error).toMatchObject(reason);
});

test("another tenant's policy is loaded beside 3,000 of one, and no unused one is", async () => {
  const [busy, idle] = [await newNeighbour(), await newNeighbour()];
  const names = keysOf("ns", 3000);
  await database.query(
    `insert into namespaces (tenant_id, name, max_lease_ms)
     select tenant_id, name, 700000 from unnest($1::int[]) tenant_id, unnest($2::text[]) name`,
    [[busy.tenant.id, idle.tenant.id], names],
  );
  const loaded = () => metric('onceward_batch_size_sum{statement="read_namespace_policies"}');
  const before = await loaded();
  const batches = counted(
    Array.from({ length: 3 }, (_, i) => {
      const own = names.slice(i * 1000, (i + 1) * 1000);
      return runBatch(
        busy.caller,
        claimsOf(own, (key) => key),
      );
    }),
  );
  await grant(idle.caller, { namespace: "ns-7", lease: seconds(700) });
  expect(batches.settled()).toBeLessThan(batches.count);
  for (const { status } of await batches.all) expect(status).toBe("fulfilled");
  expect((await loaded()) - before).toBe(names.length + 1);
});
