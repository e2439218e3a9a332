import { expect, test } from "vitest";
import { Record_State } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { type AdministeredTenant, connectAdmin, describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { completeWith, FORGET, RELEASE, type Resolution, resolve } from "../support/calls/resolutions.ts";
import { complete, grant, lookUp, ORDER, seconds } from "../support/calls/verbs.ts";
import { lockRows, openConnection } from "../support/database/connections.ts";
import { createApiKey } from "../support/servers/tenants.ts";

describeAdministration("A resolution", (world, transport) => {
  async function ambiguous(): Promise<AdministeredTenant & { fencingToken: bigint }> {
    const one = await world().administeredTenant({ on_lease_expiry: "HOLD" });
    const { fencingToken } = await grant(one.caller, { owner: "worker-1" });
    await endLeases(world().database, one.tenant);
    expect((await one.caller.claim(ORDER)).outcome.case).toBe("ambiguous");
    return { ...one, fencingToken };
  }

  async function auditOf({ admin }: AdministeredTenant) {
    return (await admin.listAuditEvents({ action: "ResolveRecord" })).events;
  }

  test("is refused alike for an unknown, forgotten or expired key, or another tenant's", async () => {
    const { admin, caller, tenant } = await world().administeredTenant();
    const theirs = await world().administeredTenant();
    await theirs.caller.claim({ ...ORDER, key: "theirs" });
    await caller.claim({ ...ORDER, key: "expired", retention: seconds(60), lease: seconds(1) });
    await ageRecords(world().database, tenant, 61);
    const unknown = await errorOf(resolve(admin, FORGET, { key: "unknown" }));
    expect(unknown).toMatchObject({ code: "NotFound", reason: "RECORD_NOT_FOUND" });
    for (const key of ["theirs", "expired"]) {
      for (const resolution of [FORGET, RELEASE, completeWith("found")]) {
        expect(await errorOf(resolve(admin, resolution, { key }))).toEqual(unknown);
      }
      // Has the name of the record in audit events besides, whether it exists or not.
      const metadata = { audit_target: expect.stringMatching(/^record [a-z]+\/[0-9a-f]{32}$/) };
      expect(await errorOf(admin.getRecord({ ...ORDER, key }))).toEqual({ ...unknown, metadata });
    }
  });

  test("refuses malformed fields, all in one error", async () => {
    const { admin } = await world().administeredTenant();
    const call = admin.resolveRecord({ namespace: "No", key: "", reason: " ", fencingToken: -1n });
    expect(await errorOf(call)).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["namespace", "key", "reason", "fencing_token", "resolution"],
    });
    const nothing: Resolution = { case: "complete", value: {} };
    const long = resolve(admin, nothing, { reason: "x".repeat(1025) });
    expect(await errorOf(long)).toMatchObject({ fields: ["reason", "complete.result"] });
  });

  test("refuses a result beyond the policy, and the record is not changed", async () => {
    const { admin, caller } = await world().administeredTenant({ max_result_bytes: 4 });
    await grant(caller);
    expect(await errorOf(resolve(admin, completeWith("found")))).toMatchObject({
      reason: "RESULT_TOO_LARGE",
      metadata: { limit_bytes: "4", actual_bytes: "5" },
    });
    expect(await lookUp(caller)).toMatchObject({ state: Record_State.IN_PROGRESS });
    await resolve(admin, completeWith("done"));
  });

  test("is an audit event with its reason and the states before and after, without key and result", async () => {
    const one = await ambiguous();
    await resolve(one.admin, completeWith("a secret result"), { reason: "the provider's log says so" });
    await resolve(one.admin, FORGET);
    const [forgotten, completed] = await auditOf(one);
    const fencingToken = String(one.fencingToken);
    expect(completed).toMatchObject({
      tenant: one.tenant.name,
      action: "ResolveRecord",
      target: expect.stringMatching(/^record charges\/[0-9a-f]{32}$/),
      reason: "the provider's log says so",
      before: { state: "ambiguous", fencingToken, attempt: 1, owner: "worker-1" },
      after: { state: "completed", fencingToken },
    });
    expect(forgotten).toMatchObject({ target: completed?.target, before: { state: "completed" } });
    expect(forgotten?.after).toBeUndefined();
    const rows = await world().database.query(
      "select e::text as everything from audit_events e where tenant_id = $1",
      [one.tenant.id],
    );
    for (const { everything } of rows) {
      expect(everything).not.toContain(ORDER.key);
      expect(everything).not.toContain("secret");
    }
  });

  test("names a key the same in every event and in GetRecord, and differently for each tenant", async () => {
    const targets = [];
    for (const one of [await ambiguous(), await ambiguous()]) {
      await resolve(one.admin, RELEASE);
      await resolve(one.admin, completeWith("found"));
      const { auditTarget } = await one.admin.getRecord(ORDER);
      expect((await one.admin.listAuditEvents({ target: auditTarget })).events).toHaveLength(2);
      targets.push([auditTarget, ...(await auditOf(one)).map(({ target }) => target)]);
    }
    const [mine, theirs] = targets.map((ofOne) => [...new Set(ofOne)]);
    expect([mine, theirs]).toEqual([[expect.any(String)], [expect.any(String)]]);
    expect(mine).not.toEqual(theirs);
  });

  test("changes nothing if the audit event can't be stored", async () => {
    const { admin, caller } = await ambiguous();
    const { database } = world();
    await database.query("alter table audit_events add constraint nothing check (reason <> 'fails')");
    expect(await errorOf(resolve(admin, FORGET, { reason: "fails" }))).toMatchObject({ reason: "INTERNAL" });
    await database.query("alter table audit_events drop constraint nothing");
    expect(await lookUp(caller)).toMatchObject({ state: Record_State.AMBIGUOUS });
  });

  test("gives up on a row that stays locked, with an error that can be retried", async () => {
    const { admin, tenant } = await ambiguous();
    const connection = await openConnection(world().database);
    await lockRows(connection, tenant, [ORDER.key]);
    expect(await errorOf(resolve(admin, FORGET))).toMatchObject({
      code: "Unavailable",
      reason: "RECORD_CONTENDED",
      retryable: true,
    });
    await connection.query("rollback");
    await resolve(admin, FORGET);
  });

  test("by an administrator limited to namespaces is refused for other namespaces", async () => {
    const { caller, tenant } = await world().administeredTenant();
    await grant(caller);
    await grant(caller, { namespace: "mails" });
    const namespaces = ["charges"];
    const role = "TENANT_ADMIN";
    const apiKey = await createApiKey(world().database, { tenantId: tenant.id, role, namespaces });
    const limited = connectAdmin(world().server, apiKey, transport);
    const mails = { namespace: "mails", key: ORDER.key };
    for (const call of [resolve(limited, FORGET, mails), limited.getRecord(mails)].map(errorOf)) {
      expect(await call).toMatchObject({ reason: "NAMESPACE_DENIED", metadata: { namespace: "mails" } });
    }
    await limited.getRecord(ORDER);
    await resolve(limited, FORGET);
  });

  test("GetRecord returns the whole record of a key", async () => {
    const { admin, caller } = await world().administeredTenant();
    await complete(caller);
    expect((await admin.getRecord(ORDER)).record).toEqual(await lookUp(caller));
    expect(await errorOf(admin.getRecord({ namespace: "No", key: "" }))).toMatchObject({
      fields: ["namespace", "key"],
    });
  });
});
