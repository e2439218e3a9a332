import { expect, test } from "vitest";
import { Policy_OnLeaseExpiry } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { ApiKey_Role, Tenant_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { connectAdmin, describeAdministration, type OperatorClient } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { grant, seconds } from "../support/calls/verbs.ts";
import { setNamespacePolicy } from "../support/servers/tenants.ts";

const DAY = seconds(86_400);

describeAdministration("An operator", { env: { ONCEWARD_USAGE_FLUSH: "100ms" } }, (world) => {
  let made = 0;
  async function makeTenant(operator: OperatorClient): Promise<string> {
    const name = `made-${++made}`;
    await operator.createTenant({ tenant: { name } });
    return name;
  }

  async function eventsOf(tenant: string) {
    const operator = await world().operator();
    return (await operator.listAuditEvents({ tenant })).events;
  }

  test("creates a tenant with a policy, bounds and quotas, and its first key", async () => {
    const operator = await world().operator();
    const name = "acme";
    const { tenant } = await operator.createTenant({
      tenant: {
        name,
        policy: { keyRetention: DAY, onLeaseExpiry: Policy_OnLeaseExpiry.HOLD },
        policyBounds: { maxKeyRetention: seconds(7 * 86_400), maxResultBytes: 1000 },
        quotas: { operationsPerSecond: 100, liveRecords: 5_000_000_000n, dryRun: true },
      },
    });
    expect(tenant).toMatchObject({
      name,
      state: Tenant_State.ACTIVE,
      policy: { keyRetention: DAY, onLeaseExpiry: Policy_OnLeaseExpiry.HOLD },
      effectivePolicy: { resultRetention: DAY, maxLease: seconds(900) },
      policyBounds: { maxKeyRetention: seconds(7 * 86_400), maxResultBytes: 1000 },
      quotas: { operationsPerSecond: 100, liveRecords: 5_000_000_000n, weight: 1, dryRun: true },
    });
    expect((await operator.getTenant({ name })).tenant).toEqual(tenant);

    const { secret } = await operator.createTenantApiKey({
      tenant: name,
      apiKey: { role: ApiKey_Role.TENANT_ADMIN, label: "the first" },
    });
    const admin = connectAdmin(world().server, secret);
    expect((await admin.getTenant({})).tenant).toEqual(tenant);
    const caller = await admin.createApiKey({ apiKey: { role: ApiKey_Role.CALLER } });
    await grant(connectClient(world().server, caller.secret));
    expect((await eventsOf(name)).map(({ action }) => action)).toEqual([
      "CreateApiKey",
      "CreateTenantApiKey",
      "CreateTenant",
    ]);
  });

  test("may let a tenant remember keys for 400 days, and no longer", async () => {
    const operator = await world().operator();
    const name = await makeTenant(operator);
    const limit = (days: number) =>
      operator.updateTenantLimits({
        name,
        policyBounds: { maxKeyRetention: seconds(days * 86_400) },
        updateMask: { paths: ["policy_bounds.max_key_retention"] },
      });
    expect((await errorOf(limit(401))).fields).toEqual(["policy_bounds.max_key_retention"]);
    await limit(400);
  });

  test("can't create a tenant with a taken name, or beyond its or the contract's bounds", async () => {
    const operator = await world().operator();
    const name = await makeTenant(operator);
    expect(await errorOf(operator.createTenant({ tenant: { name } }))).toMatchObject({
      code: "AlreadyExists",
      reason: "TENANT_EXISTS",
    });
    expect(await errorOf(operator.createTenant({}))).toMatchObject({ fields: ["tenant.name"] });
    const wrong = operator.createTenant({
      tenant: {
        name: "No",
        policy: { keyRetention: seconds(3 * 86_400) },
        policyBounds: {
          minKeyRetention: seconds(2 * 86_400),
          maxKeyRetention: DAY,
          maxLease: seconds(86_401),
          maxResultBytes: 1024 * 1024 + 1,
        },
        quotas: {
          operationsPerSecond: 0,
          burst: -1,
          concurrentCalls: 0,
          liveRecords: -1n,
          storedBytes: 2n ** 53n,
          weight: 101,
          declaredNamespaces: 10_001,
        },
      },
    });
    expect(await errorOf(wrong)).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: [
        "tenant.name",
        "policy_bounds.max_lease",
        "policy_bounds.max_result_bytes",
        "quotas.operations_per_second",
        "quotas.burst",
        "quotas.concurrent_calls",
        "quotas.live_records",
        "quotas.stored_bytes",
        "quotas.weight",
        "quotas.declared_namespaces",
        "policy_bounds.min_key_retention",
        "policy.key_retention",
      ],
    });
  });

  test("of two operators who create a tenant of one name at once, one succeeds", async () => {
    const operators = await Promise.all([world().operator(), world().operator()]);
    const name = "raced";
    const outcomes = await Promise.allSettled(operators.map((one) => one.createTenant({ tenant: { name } })));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("sets the limits that the mask names, and keeps the others", async () => {
    const operator = await world().operator();
    const name = await makeTenant(operator);
    const set = await operator.updateTenantLimits({
      name,
      policyBounds: { maxKeyRetention: DAY },
      quotas: { operationsPerSecond: 10, burst: 20 },
    });
    expect(set.tenant).toMatchObject({
      policyBounds: { maxKeyRetention: DAY },
      quotas: { operationsPerSecond: 10, burst: 20, weight: 1 },
    });
    const changed = await operator.updateTenantLimits({
      name,
      quotas: { operationsPerSecond: 30, weight: 5, concurrentCalls: 7 },
      updateMask: { paths: ["quotas.operations_per_second", "quotas.burst", "quotas.weight"] },
    });
    expect(changed.tenant).toMatchObject({
      policyBounds: { maxKeyRetention: DAY },
      quotas: { operationsPerSecond: 30, weight: 5 },
    });
    expect(changed.tenant?.quotas?.burst).toBeUndefined();
    expect(changed.tenant?.quotas?.concurrentCalls).toBeUndefined();
    const cleared = await operator.updateTenantLimits({ name, updateMask: { paths: ["*"] } });
    expect(cleared.tenant?.quotas).toMatchObject({ weight: 1, dryRun: false });
    expect(cleared.tenant?.quotas?.operationsPerSecond).toBeUndefined();
    expect(cleared.tenant?.policyBounds?.maxKeyRetention).toBeUndefined();
    expect((await operator.getTenant({ name })).tenant).toEqual(cleared.tenant);
    expect(await eventsOf(name)).toMatchObject([
      { action: "UpdateTenantLimits", before: { quotas: { weight: 5 } }, after: { quotas: { weight: 1 } } },
      { before: { quotas: { burst: 20 } }, after: { quotas: { weight: 5 } } },
      { before: { policyBounds: {} }, after: { policyBounds: { maxKeyRetentionS: 86_400 } } },
      { action: "CreateTenant" },
    ]);
  });

  test("overwrites no other change: an old etag is refused, and so is an invented one", async () => {
    const operator = await world().operator();
    const name = await makeTenant(operator);
    const { tenant: before } = await operator.getTenant({ name });
    const etag = before?.etag ?? "";
    const { tenant: after } = await operator.updateTenantLimits({ name, etag, quotas: { burst: 1 } });
    const old = await errorOf(operator.updateTenantLimits({ name, etag, quotas: { burst: 2 } }));
    expect(old).toMatchObject({ code: "Aborted", reason: "ETAG_MISMATCH" });
    expect(await errorOf(operator.deleteTenant({ name, etag }))).toEqual(old);
    expect(await errorOf(operator.deleteTenant({ name, etag: "made-up" }))).toEqual(old);
    expect((await operator.getTenant({ name })).tenant).toEqual(after);
  });

  test("gets the result of a change with validate_only, and changes nothing", async () => {
    const operator = await world().operator();
    const name = await makeTenant(operator);
    const { tenant: before } = await operator.getTenant({ name });
    const { tenant } = await operator.updateTenantLimits({
      name,
      quotas: { burst: 9 },
      validateOnly: true,
    });
    expect(tenant).toMatchObject({ quotas: { burst: 9 }, etag: before?.etag });
    expect((await operator.getTenant({ name })).tenant).toEqual(before);
    expect(await eventsOf(name)).toHaveLength(1);
    const wrong = operator.updateTenantLimits({ name, quotas: { burst: 0 }, validateOnly: true });
    expect(await errorOf(wrong)).toMatchObject({ fields: ["quotas.burst"] });
  });

  test("can't set bounds that contradict existing ones, or unknown fields", async () => {
    const operator = await world().operator();
    const name = await makeTenant(operator);
    await operator.updateTenantLimits({ name, policyBounds: { minKeyRetention: DAY } });
    const shorter = operator.updateTenantLimits({ name, policyBounds: { maxKeyRetention: seconds(60) } });
    expect(await errorOf(shorter)).toMatchObject({ fields: ["policy_bounds.min_key_retention"] });
    const unknown = operator.updateTenantLimits({
      name,
      updateMask: { paths: ["policy", "quotas.nothing"] },
    });
    expect(await errorOf(unknown)).toMatchObject({ fields: ["update_mask"] });
  });

  test("lists tenants' use beside their quotas; what has no quota is not counted", async () => {
    const operator = await world().operator();
    const { tenant, caller } = await world().administeredTenant({ quota_live_records: 1000 });
    const other = await world().administeredTenant();
    await setNamespacePolicy(world().database, tenant, "charges", { key_retention_s: 3600 });
    await grant(caller);
    await grant(other.caller);
    const useOf = async (name: string) => {
      const page = (pageToken: string) => operator.listTenantUsage({ pageSize: 3, pageToken });
      return (await readPages("tenants", page)).filter((use) => use.tenant === name);
    };
    await expect
      .poll(() => useOf(tenant.name))
      .toMatchObject([
        { quotas: { liveRecords: 1000n }, liveRecords: 1n, declaredNamespaces: 1, recentClaims: 1n },
      ]);
    const [otherUse] = await useOf(other.tenant.name);
    expect(otherUse).toMatchObject({ declaredNamespaces: 0, unfinishedRecordJobs: 0 });
    expect(otherUse?.liveRecords).toBeUndefined();
    const named = async (name: string) => (await operator.listTenantUsage({ tenant: name })).tenants;
    expect((await named(tenant.name)).map((use) => use.tenant)).toEqual([tenant.name]);
    expect(await named("no-tenant")).toEqual([]);
    expect(await errorOf(named("No Name"))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["tenant"],
    });
  });

  test("lists tenants by name, each once although others are created between pages", async () => {
    const operator = await world().operator();
    const prefix = "listed";
    for (const letter of ["b", "d", "f"])
      await operator.createTenant({ tenant: { name: `${prefix}-${letter}` } });
    const all = async (pageSize: number) => {
      const page = (pageToken: string) => operator.listTenants({ pageSize, pageToken });
      return (await readPages("tenants", page)).map(({ name }) => name);
    };
    const names = await all(1000);
    expect(names).toEqual([...names].sort());
    expect(await all(1)).toEqual(names);
    const before = names.indexOf(`${prefix}-b`) + 1;
    const { nextPageToken } = await operator.listTenants({ pageSize: before });
    for (const letter of ["a", "c"]) await operator.createTenant({ tenant: { name: `${prefix}-${letter}` } });
    const { tenants } = await operator.listTenants({ pageSize: 2, pageToken: nextPageToken });
    expect(tenants.map(({ name }) => name)).toEqual([`${prefix}-c`, `${prefix}-d`]);
  });
});
