import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { QuotaFailureSchema } from "../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { connectAdmin, describeAdministration } from "../support/calls/admin.ts";
import { type ItemRequest, type ItemResponse, runBatch } from "../support/calls/batches.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { complete, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { openConnection, untilBlocked } from "../support/database/connections.ts";
import { countRows } from "../support/database/time.ts";
import { type Caller, type Contract, describeContractOnce } from "../support/servers/contract.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createApiKey } from "../support/servers/tenants.ts";

/** One operation a second, and one at once. */
const ONE = { quota_operations_per_second: 1, quota_burst: 1 };

function claims(count: number): ItemRequest[] {
  return Array.from({ length: count }, (_, i) => ({
    case: "claim" as const,
    value: { namespace: "charges", key: `order-${i}` },
  }));
}

/** Returns the case of each response; for an error, its reason. */
function casesOf(responses: readonly ItemResponse[]): (ErrorReason | ItemResponse["case"])[] {
  return responses.map((response) => (response.case === "error" ? response.value.reason : response.case));
}

/** Has a tenant of ONE owe ten seconds' operations, with settlements of a claim that does not exist. */
async function exhaust(
  client: IdempotencyClient,
  kind: "complete" | "release" | "extendLease" = "release",
): Promise<void> {
  const value = { namespace: "charges", key: "nobody's", fencingToken: 1n, result: success("paid") };
  const answered = casesOf(await runBatch(client, Array(50).fill({ case: kind, value })));
  expect(new Set(answered)).toEqual(new Set([ErrorReason.RECORD_NOT_FOUND]));
}

/** Returns the tenant's counted refusals, once the replica knows the tenant's label. */
async function refusals({ server }: Contract, { tenant }: Caller): Promise<Readonly<Record<string, number>>> {
  const ofTenant = new RegExp(
    `^onceward_admission_refused_total\\{tenant="${tenant.name}",cause="(\\w+)",mode="(\\w+)"\\}$`,
  );
  const read = async () =>
    [...(await readMetrics(server))].flatMap(([name, count]) => {
      const [, cause, mode] = ofTenant.exec(name) ?? [];
      return cause === undefined ? [] : [[`${cause} ${mode}`, count] as const];
    });
  await expect.poll(read).not.toEqual([]);
  return Object.fromEntries(await read());
}

describeContractOnce("a tenant's rate", (contract) => {
  test("refuses calls beyond it, with the limit and a retry delay, and without effect", async () => {
    const caller = await contract.newCaller(ONE);
    await exhaust(caller.client);
    const error = await caller.client.claim(ORDER).catch((thrown: unknown) => ConnectError.from(thrown));
    expect(await errorOf(Promise.reject(error))).toMatchObject({
      code: "ResourceExhausted",
      reason: "QUOTA_RATE",
      metadata: { scope: "service", limit: "1" },
      retryable: true,
    });
    expect((error as ConnectError).findDetails(QuotaFailureSchema)[0]?.violations).toMatchObject([
      { subject: `tenant:${caller.tenant.name}`, description: "The tenant may make 1 operations a second." },
    ]);
    expect(await countRows(contract.database, caller.tenant)).toBe(0);
    expect(await refusals(contract, caller)).toEqual({ "rate enforced": 1 });
  });

  test("refuses a call before the policy of its namespace is read from the database", async () => {
    const { client } = await contract.newCaller(ONE, { refunds: { max_lease_ms: 2000 } });
    await exhaust(client);
    const connection = await openConnection(contract.database);
    await connection.query("begin; lock table namespaces in access exclusive mode");
    const refused = errorOf(client.claim({ ...ORDER, namespace: "refunds" }));
    expect(await refused).toMatchObject({ reason: "QUOTA_RATE" });
  });

  test("refuses single items of a batch", async () => {
    const { client } = await contract.newCaller({ quota_operations_per_second: 1, quota_burst: 3 });
    const answered = casesOf(await runBatch(client, claims(5)));
    expect(answered).toEqual(["claim", "claim", "claim", ErrorReason.QUOTA_RATE, ErrorReason.QUOTA_RATE]);
  });

  test.each(["complete", "release", "extendLease"] as const)("counts every %s", async (kind) => {
    const { client } = await contract.newCaller(ONE);
    await exhaust(client, kind);
    expect(await errorOf(client.lookup(ORDER))).toMatchObject({ reason: "QUOTA_RATE" });
  });

  test("never refuses settling a claim or extending its lease", async () => {
    const { client } = await contract.newCaller({ quota_operations_per_second: 1, quota_burst: 2 });
    const { fencingToken } = await grant(client);
    const released = await grant(client, { key: "order-2" });
    await exhaust(client);
    await client.extendLease({ ...ORDER, fencingToken });
    await client.complete({ ...ORDER, fencingToken, result: success("paid") });
    await client.release({ ...ORDER, key: "order-2", fencingToken: released.fencingToken });
  });

  test("is only counted in a dry run", async () => {
    const caller = await contract.newCaller({ ...ONE, quota_dry_run: true });
    await exhaust(caller.client);
    await grant(caller.client);
    await caller.client.lookup(ORDER);
    expect(await refusals(contract, caller)).toEqual({ "rate dry_run": 2 });
  });
});

describeContractOnce("a tenant's calls in progress", (contract) => {
  test("are limited, including waiting ones; settling a claim is never refused", async () => {
    const { tenant, client } = await contract.newCaller({ quota_concurrent_calls: 2 });
    const { fencingToken } = await grant(client);
    const abort = new AbortController();
    const wait = () => client.claim({ ...ORDER, wait: seconds(30) }, { signal: abort.signal });
    const waiting = Promise.allSettled([wait(), wait()]);
    const waiters = async () => (await readMetrics(contract.server)).get("onceward_waiters");
    await expect.poll(waiters, { timeout: 30_000, interval: 10 }).toBe(2);

    expect(await errorOf(client.lookup(ORDER))).toMatchObject({
      code: "ResourceExhausted",
      reason: "QUOTA_CONCURRENCY",
      metadata: { scope: "replica", limit: "2" },
      retryable: true,
    });
    const adminKey = await createApiKey(contract.database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
    await connectAdmin(contract.server, adminKey, contract.transport).getTenant({});
    await client.extendLease({ ...ORDER, fencingToken });
    const lookup = { request: { case: "lookup" as const, value: ORDER } };
    const extension = { request: { case: "extendLease" as const, value: { ...ORDER, fencingToken } } };
    const { items } = await client.batch({ items: [lookup, extension] });
    expect(items.map(({ response }) => response.case)).toEqual(["error", "extendLease"]);
    // Another tenant's calls do not affect this one.
    await (await contract.newCaller()).client.lookup(ORDER);

    abort.abort();
    await waiting;
    const attempts = async () => (await client.lookup(ORDER)).record?.attempt;
    await expect.poll(() => attempts().catch(() => 0), { timeout: 30_000, interval: 10 }).toBe(1);
  });
});

describeContractOnce(
  "a tenant's store",
  (contract) => {
    test("refuses claims beyond the quota of records; completions and cached replays are answered", async () => {
      const caller = await contract.newCaller({ quota_live_records: 2 });
      const { client } = caller;
      await complete(client, success("paid"));
      const other = { namespace: "charges", key: "order-2", claimId: "call-1" };
      const { fencingToken } = granted(await client.claim(other));
      // The same claim once more is not another record, but only Postgres knows that.
      expect(await errorOf(client.claim({ ...other, key: "order-3" }))).toMatchObject({
        code: "ResourceExhausted",
        reason: "QUOTA_RECORDS",
        metadata: { scope: "service", limit: "2" },
        retryable: true,
      });
      expect((await client.claim(ORDER)).outcome.case).toBe("completed");
      await client.complete({ ...other, fencingToken, result: success("paid") });
      expect(await countRows(contract.database, caller.tenant)).toBe(2);
    });

    test("counts a claim that is repeated once", async () => {
      const { client } = await contract.newCaller({ quota_live_records: 2 });
      await grant(client, { claimId: "call-1" });
      await grant(client, { claimId: "call-1" });
      await grant(client, { key: "order-2" });
    });

    test("refuses claims beyond the quota of bytes; completions are stored", async () => {
      const { client } = await contract.newCaller({ quota_stored_bytes: 1000 });
      const held = await grant(client, { key: "order-2" });
      await complete(client, success("x".repeat(1000)));
      expect(await errorOf(client.claim({ ...ORDER, key: "order-3" }))).toMatchObject({
        reason: "QUOTA_BYTES",
        metadata: { scope: "service", limit: "1000" },
      });
      const { fencingToken } = held;
      await client.complete({ ...ORDER, key: "order-2", fencingToken, result: success("more") });
    });

    test("grants a waiter the record that it waited for", async () => {
      const { client } = await contract.newCaller({ quota_live_records: 2 });
      const { fencingToken } = await grant(client);
      const waiting = client.claim({ ...ORDER, wait: seconds(15) });
      const waiters = async () => (await readMetrics(contract.server)).get("onceward_waiters");
      await expect.poll(waiters, { timeout: 30_000, interval: 10 }).toBe(1);
      await grant(client, { key: "order-2" });
      await client.release({ ...ORDER, fencingToken });
      expect(granted(await waiting).attempt).toBe(2);
    });
  },
  { ONCEWARD_CACHE_MIB: "8" },
);

describeAdministration("administration", { env: { ONCEWARD_POOL_SIZE: "2" } }, (world, _transport) => {
  /** Keeps a tenant's row locked, so that every change of it waits, until the function is called. */
  async function lockTenantRow(id: number): Promise<() => Promise<unknown>> {
    const connection = await openConnection(world().database);
    await connection.query("begin");
    await connection.query("select from tenants where id = $1 for update", [id]);
    return () => connection.query("rollback");
  }

  test("is refused beyond the tenant's rate, to which its callers' calls don't count", async () => {
    const { admin, caller } = await world().administeredTenant({
      quota_operations_per_second: 1,
      quota_burst: 1,
    });
    await grant(caller);
    await admin.getTenant({});
    expect(await errorOf(admin.listNamespaces({}))).toMatchObject({
      code: "ResourceExhausted",
      reason: "QUOTA_RATE",
      metadata: { scope: "service", limit: "1" },
      retryable: true,
    });
  });

  test("is refused beyond the tenant's calls in progress, to which its callers' calls don't count", async () => {
    const { tenant, admin, caller } = await world().administeredTenant({ quota_concurrent_calls: 1 });
    const unlock = await lockTenantRow(tenant.id);
    const update = () => admin.updateTenant({ tenant: { policy: { maxLease: seconds(60) } } });
    const first = update();
    await untilBlocked(world().database);
    expect(await errorOf(update())).toMatchObject({
      reason: "QUOTA_CONCURRENCY",
      metadata: { scope: "replica", limit: "1" },
    });
    await grant(caller);
    await unlock();
    await first;
  });

  test("that waits for locks keeps no claim of another tenant from a connection", async () => {
    const { tenant, admin } = await world().administeredTenant();
    const { caller } = await world().administeredTenant();
    const unlock = await lockTenantRow(tenant.id);
    const ended: string[] = [];
    const update = async () => {
      await admin.updateTenant({ tenant: { policy: { maxLease: seconds(60) } } }).catch(describeError);
      ended.push("update");
    };
    const updates = Array.from({ length: 20 }, update);
    await untilBlocked(world().database);
    await grant(caller, { key: randomUUID() });
    ended.push("claim");
    await unlock();
    await Promise.all(updates);
    expect(ended[0]).toBe("claim");
  });
});
