import { expect, test } from "vitest";
import { DeclinedCall_Outcome } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { MAX_CALLS } from "../../server/src/key-history/declined-keys.ts";
import { type AdminWorld, describeAdministration } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { fingerprintOf, grant, ORDER, success } from "../support/calls/verbs.ts";
import { createApiKey } from "../support/servers/tenants.ts";

/** Stored at once, so that a test need not wait. */
const EAGER = { ONCEWARD_USAGE_FLUSH: "100ms" };
const as = (id: string) => ({ headers: { "x-request-id": id } });
const { REPLAYED, IN_PROGRESS, MISMATCHED, OVER_QUOTA, SUPERSEDED } = DeclinedCall_Outcome;

describeAdministration("the history of a key", { env: EAGER }, (world: () => AdminWorld) => {
  test("has each duplicate and refusal, by API key and request id, over the flushes of a replica", async () => {
    const { tenant, admin, caller } = await world().administeredTenant();
    const fingerprint = fingerprintOf("7 EUR");
    const history = () => admin.getKeyHistory(ORDER);
    const { fencingToken } = await grant(caller, { fingerprint });
    expect(await history()).toMatchObject({ replayed: 0n, calls: [] });
    await caller.claim({ ...ORDER, fingerprint }, as("early"));
    await expect.poll(history).toMatchObject({ inProgress: 1n, replayed: 0n });
    await caller.complete({ ...ORDER, fencingToken, result: success("paid") });
    const second = await createApiKey(world().database, { tenantId: tenant.id, role: "CALLER" });
    for (const id of ["again", "once-more"])
      await connectClient(world().server, second).claim({ ...ORDER, fingerprint }, as(id));
    const other = { ...ORDER, fingerprint: fingerprintOf("8 EUR") };
    expect(await errorOf(caller.claim(other, as("another")))).toMatchObject({
      reason: "FINGERPRINT_MISMATCH",
    });
    const late = { ...ORDER, fencingToken: fencingToken - 1n, result: success("paid") };
    expect(await errorOf(caller.complete(late, as("late")))).toMatchObject({ reason: "CLAIM_SUPERSEDED" });

    await expect.poll(history).toMatchObject({ superseded: 1n });
    const found = await history();
    expect(found).toMatchObject({
      replayed: 2n,
      inProgress: 1n,
      mismatched: 1n,
      ambiguous: 0n,
      overQuota: 0n,
    });
    const idOf = (apiKey: string) => apiKey.split("_")[1];
    expect(found.calls.map(({ outcome, actor, requestId }) => [outcome, actor, requestId])).toEqual([
      [IN_PROGRESS, idOf(tenant.apiKey), "early"],
      [REPLAYED, idOf(second), "again"],
      [REPLAYED, idOf(second), "once-more"],
      [MISMATCHED, idOf(tenant.apiKey), "another"],
      [SUPERSEDED, idOf(tenant.apiKey), "late"],
    ]);
    expect(found.firstAt).toEqual(found.calls[0]?.at);
    expect(found.lastAt).toEqual(found.calls.at(-1)?.at);
    expect(await admin.getKeyHistory({ ...ORDER, key: "order-2" })).toMatchObject({
      replayed: 0n,
      calls: [],
    });
  });

  test("keeps a key's newest calls", async () => {
    const { admin, caller } = await world().administeredTenant();
    await grant(caller);
    const history = () => admin.getKeyHistory(ORDER);
    for (let call = 1; call <= MAX_CALLS + 1; call++) {
      await caller.claim(ORDER, as(`repeat-${call}`));
      // Each is stored alone.
      await expect.poll(history).toMatchObject({ inProgress: BigInt(call) });
    }
    const { calls } = await history();
    expect([calls.length, calls[0]?.requestId, calls.at(-1)?.requestId]).toEqual([
      MAX_CALLS,
      "repeat-2",
      `repeat-${MAX_CALLS + 1}`,
    ]);
  });

  test("has claims beyond a quota, of a key that has no record, and ends with its namespace", async () => {
    const { admin, caller } = await world().administeredTenant({ quota_live_records: 1 });
    await grant(caller);
    const refused = { namespace: "payouts", key: "order-2" };
    await admin.updateNamespace({ namespace: { name: "payouts" }, allowMissing: true });
    expect(await errorOf(caller.claim(refused, as("too-many")))).toMatchObject({ reason: "QUOTA_RECORDS" });
    const history = () => admin.getKeyHistory(refused);
    await expect.poll(history).toMatchObject({
      ...{ overQuota: 1n, calls: [{ outcome: OVER_QUOTA, requestId: "too-many" }] },
    });
    await admin.deleteNamespace({ name: "payouts" });
    expect(await history()).toMatchObject({ overQuota: 0n, calls: [] });
  });

  test("gives its place to another key that takes the same row", async () => {
    const { tenant, admin, caller } = await world().administeredTenant();
    await grant(caller);
    await caller.claim(ORDER);
    const history = () => admin.getKeyHistory(ORDER);
    await expect.poll(history).toMatchObject({ inProgress: 1n });
    const { database } = world();
    await database.query("update key_histories set key_hash = '\\x00', replayed = 9 where tenant_id = $1", [
      tenant.id,
    ]);
    expect(await history()).toMatchObject({ inProgress: 0n, replayed: 0n });
    await caller.claim(ORDER);
    await expect.poll(history).toMatchObject({ inProgress: 1n, replayed: 0n });
    expect((await history()).calls).toHaveLength(1);
  });
});
