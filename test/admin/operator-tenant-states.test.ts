import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ApiKey_Role, Tenant_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";

describeAdministration("An operator", (world, _transport) => {
  async function eventsOf(tenant: string) {
    const operator = await world().operator();
    return (await operator.listAuditEvents({ tenant })).events;
  }

  test("suspends a tenant, whose calls are then refused, and resumes it", async () => {
    const operator = await world().operator();
    const { admin, caller, tenant } = await world().administeredTenant();
    await grant(caller);
    const { name } = tenant;
    const suspended = await operator.suspendTenant({ name, reason: "unpaid" });
    expect(suspended.tenant).toMatchObject({ state: Tenant_State.SUSPENDED });
    expect(await operator.suspendTenant({ name, reason: "again" })).toEqual(suspended);
    for (const call of [caller.lookup(ORDER), admin.getTenant({})].map(errorOf)) {
      expect(await call).toMatchObject({ code: "PermissionDenied", reason: "TENANT_SUSPENDED" });
    }
    const resumed = await operator.resumeTenant({ name, reason: "paid" });
    expect(resumed.tenant).toMatchObject({ state: Tenant_State.ACTIVE });
    expect(await operator.resumeTenant({ name })).toEqual(resumed);
    expect((await caller.lookup(ORDER)).record).toBeDefined();
    const changes = (await eventsOf(name)).filter(({ denial }) => denial === "");
    expect(changes).toMatchObject([
      { action: "ResumeTenant", reason: "paid", before: { state: "SUSPENDED" }, after: { state: "ACTIVE" } },
      { action: "SuspendTenant", reason: "unpaid", before: { state: "ACTIVE" } },
    ]);
  });

  test("resumes a moving tenant only if confirmed as not imported, and can't suspend it", async () => {
    const operator = await world().operator();
    const { name } = (await world().administeredTenant()).tenant;
    await world().database.query("update tenants set moving_since = now() where name = $1", [name]);
    const invalid = (field: string) => ({ reason: "INVALID_REQUEST", fields: [field] });
    expect(await errorOf(operator.resumeTenant({ name }))).toMatchObject(invalid("not_imported"));
    expect(await errorOf(operator.suspendTenant({ name }))).toMatchObject(invalid("name"));
    expect((await operator.getTenant({ name })).tenant).toMatchObject({ state: Tenant_State.MOVING });
    const resumed = await operator.resumeTenant({ name, notImported: true });
    expect(resumed.tenant).toMatchObject({ state: Tenant_State.ACTIVE });
  });

  test("redirects a moving tenant's callers, and no others, and resumes it only without an address", async () => {
    const operator = await world().operator();
    const { caller, tenant } = await world().administeredTenant();
    const { name } = tenant;
    const address = "https://new-home.example:50051";
    const invalid = (field: string) => ({ reason: "INVALID_REQUEST", fields: [field] });
    expect(await errorOf(operator.redirectTenant({ name, address }))).toMatchObject(invalid("address"));
    await world().database.query("update tenants set moving_since = now() where name = $1", [name]);
    for (const wrong of ["new-home", "unix:/run/onceward.sock", `${address}/v1`, "https://a:b@c.example"])
      expect(await errorOf(operator.redirectTenant({ name, address: wrong }))).toMatchObject(
        invalid("address"),
      );
    const redirected = await operator.redirectTenant({ name, address: `${address}/`, reason: "moved" });
    expect(redirected.tenant).toMatchObject({ state: Tenant_State.MOVING, movedTo: address });
    expect(await operator.redirectTenant({ name, address })).toEqual(redirected);
    const refusal = async () => (await errorOf(caller.lookup(ORDER))).metadata;
    await expect.poll(refusal).toEqual({ address });
    // An operator's call would take the operator's key along.
    const { metadata } = await errorOf(operator.updateTenantLimits({ name, quotas: { burst: 1 } }));
    expect(metadata).toEqual({});
    const resume = () => operator.resumeTenant({ name, notImported: true });
    expect(await errorOf(resume())).toMatchObject(invalid("not_imported"));
    await operator.redirectTenant({ name });
    expect(await refusal()).toEqual({});
    expect((await resume()).tenant).toMatchObject({ state: Tenant_State.ACTIVE, movedTo: "" });
    expect(await eventsOf(name)).toContainEqual(
      expect.objectContaining({
        ...{ action: "RedirectTenant", reason: "moved" },
        ...{ before: { state: "MOVING" }, after: { state: "MOVING", movedTo: address } },
      }),
    );
  });

  test("refuses changes of a moving tenant, whose export may be written already", async () => {
    const operator = await world().operator();
    const { name } = (await world().administeredTenant()).tenant;
    await world().database.query("update tenants set moving_since = now() where name = $1", [name]);
    const changes = [
      operator.updateTenantLimits({
        name,
        quotas: { liveRecords: 5n },
        updateMask: { paths: ["quotas.live_records"] },
      }),
      operator.createTenantApiKey({ tenant: name, apiKey: { role: ApiKey_Role.CALLER } }),
    ];
    for (const error of await Promise.all(changes.map(errorOf))) {
      expect(error).toMatchObject({ code: "Unavailable", reason: "TENANT_MOVING" });
    }
  });

  test("deletes a tenant: calls are refused permanently, records removed in the background", async () => {
    const operator = await world().operator();
    const { admin, caller, tenant } = await world().administeredTenant();
    await grant(caller);
    const { name } = tenant;
    const etag = (await operator.getTenant({ name })).tenant?.etag ?? "";
    const deleted = await operator.deleteTenant({ name, etag, reason: "left" });
    expect(deleted.tenant).toMatchObject({ name, state: Tenant_State.DELETING });
    expect(await operator.deleteTenant({ name, etag })).toEqual(deleted);
    for (const call of [caller.claim(ORDER), admin.getTenant({})].map(errorOf)) {
      // Its keys are revoked, too: whichever is noticed first.
      expect(["TENANT_SUSPENDED", "CREDENTIAL_INVALID"]).toContain((await call).reason);
    }
    const { database } = world();
    const jobs = await database.query("select kind, namespace from record_jobs where tenant_id = $1", [
      tenant.id,
    ]);
    expect(jobs).toEqual([{ kind: "DELETE", namespace: null }]);
    const live = await database.query("select 1 from api_keys where tenant_id = $1 and revoked_at is null", [
      tenant.id,
    ]);
    expect(live).toEqual([]);

    const gone = { code: "NotFound", reason: "TENANT_NOT_FOUND" };
    const calls = [
      () => operator.resumeTenant({ name }),
      () => operator.suspendTenant({ name }),
      () => operator.updateTenantLimits({ name, quotas: { burst: 1 } }),
      () => operator.createTenantApiKey({ tenant: name, apiKey: { role: ApiKey_Role.CALLER } }),
    ];
    for (const call of calls) expect(await errorOf(call())).toMatchObject(gone);
    expect((await operator.getTenant({ name })).tenant).toMatchObject({ state: Tenant_State.DELETING });
    expect(await errorOf(operator.createTenant({ tenant: { name } }))).toMatchObject({
      reason: "TENANT_EXISTS",
    });

    await database.query("update record_jobs set starts_at = now() where tenant_id = $1", [tenant.id]);
    const rowsOf = () => database.query("select 1 from tenants where id = $1", [tenant.id]);
    await expect.poll(rowsOf, { timeout: 30_000, interval: 100 }).toEqual([]);
    expect(await errorOf(operator.getTenant({ name }))).toMatchObject(gone);
    await operator.createTenant({ tenant: { name } });
    expect((await eventsOf(name)).map(({ action, denial }) => (denial === "" ? action : denial))).toContain(
      "DeleteTenant",
    );
  });

  test("deletes a tenant with a job that fails for as long as its result cannot be decrypted", async () => {
    const { database } = world();
    const operator = await world().operator();
    const { tenant } = await world().administeredTenant();
    await database.query(
      `insert into record_jobs (tenant_id, kind, terms, resolution, starts_at)
       values ($1, 'RESOLVE', '{"which": {}, "audit": {}}', 'unreadable', now())`,
      [tenant.id],
    );
    await operator.deleteTenant({ name: tenant.name, reason: "left" });
    await database.query("update record_jobs set starts_at = now() where tenant_id = $1", [tenant.id]);
    const rowsOf = () => database.query("select 1 from tenants where id = $1", [tenant.id]);
    await expect.poll(rowsOf, { timeout: 30_000, interval: 100 }).toEqual([]);
  });

  test("gets the same error for an unknown tenant from every RPC", async () => {
    const operator = await world().operator();
    const name = "nobody";
    const calls = [
      () => operator.getTenant({ name }),
      () => operator.updateTenantLimits({ name }),
      () => operator.suspendTenant({ name }),
      () => operator.resumeTenant({ name }),
      () => operator.redirectTenant({ name, address: "https://elsewhere.example" }),
      () => operator.deleteTenant({ name }),
      () => operator.createTenantApiKey({ tenant: name, apiKey: { role: ApiKey_Role.CALLER } }),
    ];
    const errors = [];
    for (const call of calls) errors.push(await errorOf(call()));
    expect(errors[0]).toMatchObject({ code: "NotFound", reason: "TENANT_NOT_FOUND" });
    expect(new Set(errors.map((error) => JSON.stringify(error))).size).toBe(1);
  });

  test("gets all malformed fields in one error", async () => {
    const operator = await world().operator();
    const reason = "x".repeat(1025);
    const calls = [
      () => operator.suspendTenant({ name: "No", reason }),
      () => operator.resumeTenant({ name: "No", reason }),
      () => operator.deleteTenant({ name: "No", reason }),
    ];
    for (const call of calls) expect(await errorOf(call())).toMatchObject({ fields: ["name", "reason"] });
    const key = operator.createTenantApiKey({ tenant: "No", apiKey: { role: ApiKey_Role.OPERATOR } });
    expect(await errorOf(key)).toMatchObject({ fields: ["tenant", "api_key.role"] });
    expect(await errorOf(operator.getTenant({}))).toMatchObject({ fields: ["name"] });
    const limits = operator.updateTenantLimits({ name: "", policyBounds: { maxLease: durationFromMs(999) } });
    expect(await errorOf(limits)).toMatchObject({ fields: ["name", "policy_bounds.max_lease"] });
    expect(await errorOf(operator.listTenants({ pageSize: -1, pageToken: "x" }))).toMatchObject({
      fields: ["page_size", "page_token"],
    });
  });
});
