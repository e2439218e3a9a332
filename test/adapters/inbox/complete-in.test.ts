import { createOnceward, type Onceward } from "@onceward/client";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { completeIn, deliverCompletions } from "../../../clients/typescript/src/inbox.ts";
import { endLeases, granted } from "../../support/calls/records.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { useCallerDatabase } from "./transactions.ts";

const { database: service, server } = useServer();
const { caller, db } = useCallerDatabase();
let keys = 0;

// A database's completions belong to one tenant; each test has a new database.
beforeEach(async () => {
  await caller.query("delete from onceward_completions");
});

async function newClient() {
  const tenant = await createTenant(service);
  const onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey: tenant.apiKey });
  onTestFinished(() => onceward.close());
  keys++;
  return { onceward, tenant, operation: { namespace: "orders", key: `order-${keys}` } };
}

type Claim = Parameters<typeof completeIn>[1];

function takeOrder(claim: Claim, value: string): Promise<string> {
  return db.transaction((tx) =>
    completeIn(tx.executor, claim, async () => {
      await tx.insertEffect(claim.key, value);
      return value;
    }),
  );
}

/** Claims without a run, like a process that crashed after its claim. */
async function claimByHand(
  onceward: Onceward,
  operation: { namespace: string; key: string },
): Promise<Claim> {
  const { fencingToken } = granted(await onceward.calls.claim(operation));
  return { ...operation, fencingToken };
}

test("the run and its repeat return the written value", async () => {
  const { onceward, operation } = await newClient();
  const run = (value: string) => onceward.runDetailed(operation, (claim) => takeOrder(claim, value));
  expect(await run("first")).toMatchObject({ value: "first", replayed: false });
  expect(await run("second")).toMatchObject({ value: "first", replayed: true });
  expect(await caller.effects(operation.key)).toEqual([{ key: operation.key, value: "first" }]);
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({
    undeliverable: 0,
    failed: 0,
  });
});

test("a codec's bytes are delivered unchanged", async () => {
  const { onceward, operation } = await newClient();
  const codec = {
    encode: (value: bigint) => ({
      payload: Buffer.from(String(value)),
      contentType: "text/plain",
      metadata: { unit: "cents" },
    }),
    decode: ({ payload }: { payload: Uint8Array }) => BigInt(Buffer.from(payload).toString()),
  };
  const claim = await claimByHand(onceward, operation);
  expect(await db.transaction((tx) => completeIn(tx.executor, claim, () => 7n, codec))).toBe(7n);
  await deliverCompletions({ onceward, database: db.pool });
  const { record } = await onceward.calls.lookup(operation);
  expect(record?.result).toMatchObject({
    payload: new Uint8Array(Buffer.from("7")),
    contentType: "text/plain",
    metadata: { unit: "cents" },
  });
});

test("an attempt that takes over an undeliverable completion delivers it", async () => {
  const { onceward, operation, tenant } = await newClient();
  await takeOrder(await claimByHand(onceward, operation), "before the crash");
  await endLeases(service, tenant);
  const second = await claimByHand(onceward, operation);
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ undeliverable: 1 });
  expect(await takeOrder(second, "after the crash")).toBe("before the crash");
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
  expect(await onceward.run(operation, () => "again")).toBe("before the crash");
  expect(await caller.effects(operation.key)).toHaveLength(1);
});

test("a stalled holder that resumes after another one has finished writes nothing", async () => {
  const { onceward, operation, tenant } = await newClient();
  const stalled = await claimByHand(onceward, operation);
  await endLeases(service, tenant);
  await onceward.run(operation, (claim) => takeOrder(claim, "by the second"));
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
  expect(await takeOrder(stalled, "by the first")).toBe("by the second");
  expect(await caller.effects(operation.key)).toEqual([{ key: operation.key, value: "by the second" }]);
});

test("an effect that was written unguarded is taken over by the first claim, and not repeated", async () => {
  const { onceward, operation } = await newClient();
  const unguarded = { ...operation, fencingToken: 0n };
  expect(await takeOrder(unguarded, "unguarded")).toBe("unguarded");
  expect(await takeOrder(unguarded, "unguarded again")).toBe("unguarded");
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ undeliverable: 1 });
  expect(await onceward.run(operation, (claim) => takeOrder(claim, "guarded"))).toBe("unguarded");
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
  expect(await caller.effects(operation.key)).toHaveLength(1);
});

test("two concurrent holders commit one effect", async () => {
  const { onceward, operation, tenant } = await newClient();
  const first = await claimByHand(onceward, operation);
  await endLeases(service, tenant);
  const second = await claimByHand(onceward, operation);
  const values = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      takeOrder(index % 2 === 0 ? first : second, `by ${index % 2 === 0 ? "the first" : "the second"}`),
    ),
  );
  const effects = await caller.effects(operation.key);
  expect(effects).toHaveLength(1);
  expect(new Set(values)).toEqual(new Set([effects[0]?.value]));
});

test("a transaction that is repeated because its commit is unknown commits once", async () => {
  const { onceward, operation } = await newClient();
  const run = onceward.run(operation, async (claim) => {
    await takeOrder(claim, "committed, reply lost");
    return await takeOrder(claim, "repeated");
  });
  expect(await run).toBe("committed, reply lost");
  expect(await caller.effects(operation.key)).toHaveLength(1);
});

test("a key that the service has forgotten is a new operation", async () => {
  const { onceward, operation, tenant } = await newClient();
  await onceward.run(operation, (claim) => takeOrder(claim, "first"));
  await deliverCompletions({ onceward, database: db.pool });
  await service.query("update records set expires_at = now() where tenant_id = $1", [tenant.id]);
  expect(await onceward.run(operation, (claim) => takeOrder(claim, "second"))).toBe("second");
  expect(await caller.effects(operation.key)).toHaveLength(2);
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
});

test("a value that can't be stored undoes the effect instead of losing the value", async () => {
  const { onceward, operation } = await newClient();
  const run = onceward.run(operation, (claim) =>
    db.transaction((tx) =>
      completeIn(tx.executor, claim, async () => {
        await tx.insertEffect(claim.key, "undone");
        return 1n;
      }),
    ),
  );
  await expect(run).rejects.toMatchObject({ name: "OncewardError", reason: "RESULT_NOT_JSON" });
  expect(await caller.effects(operation.key)).toEqual([]);
});

test("a nested completeIn is refused", async () => {
  const { onceward, operation } = await newClient();
  const claim = await claimByHand(onceward, operation);
  const fn = vi.fn();
  const nested = db.transaction((tx) =>
    completeIn(tx.executor, claim, () => completeIn(tx.executor, claim, fn)),
  );
  await expect(nested).rejects.toMatchObject({ reason: "RECORD_CONTENDED" });
  expect(fn).not.toHaveBeenCalled();
});
