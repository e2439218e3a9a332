import { expect, onTestFinished, test } from "vitest";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import {
  connectAdmin,
  connectOperator,
  createWorld,
  describeAdministration,
} from "../support/calls/admin.ts";
import { runBatch } from "../support/calls/batches.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { FORGET, resolve } from "../support/calls/resolutions.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { eventsOf } from "../support/database/audit.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { startIssuer } from "../support/servers/issuer.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createApiKey, type TestTenant } from "../support/servers/tenants.ts";

const MAILS = { ...ORDER, namespace: "mails" };

describeAdministration("What is denied", (world, transport) => {
  /** A tenant's denials, once so many events have been written. */
  async function denialsOf(tenant: TestTenant, count: number) {
    const denied = async () => {
      const events = await eventsOf(world().database, tenant);
      return events.filter(({ outcome }) => outcome === "DENIED");
    };
    await expect.poll(async () => (await denied()).length, { timeout: 30_000, interval: 10 }).toBe(count);
    return denied();
  }

  async function limitedKey(tenant: TestTenant, role: "CALLER" | "TENANT_ADMIN"): Promise<string> {
    return createApiKey(world().database, { tenantId: tenant.id, role, namespaces: ["charges"] });
  }

  test("a denied change is an audit event; a minute's further ones are one with their number", async () => {
    const server = await startTestServer(world().database.url);
    const own = createWorld(world().database, server, transport);
    const { adminKey, caller, tenant } = await own.administeredTenant();
    await grant(caller);
    const callersKey = connectAdmin(server, tenant.apiKey, transport);
    const adminsKey = connectOperator(server, adminKey, transport);
    for (let repeat = 0; repeat < 3; repeat++) {
      expect(await errorOf(resolve(callersKey, FORGET))).toMatchObject({ reason: "ROLE_DENIED" });
      expect(await errorOf(adminsKey.deleteTenant({ name: tenant.name }))).toMatchObject({
        reason: "ROLE_DENIED",
      });
    }
    await denialsOf(tenant, 2);
    await server.stop();
    const denials = await denialsOf(tenant, 4);
    const denied = { outcome: "DENIED", denial: "ROLE_DENIED", before: null, after: null };
    const callers = { ...denied, actor: parseApiKey(tenant.apiKey)?.id, action: "ResolveRecord" };
    const admins = { ...denied, actor: parseApiKey(adminKey)?.id, action: "DeleteTenant" };
    expect(denials).toMatchObject([
      { ...callers, calls: 1 },
      { ...admins, calls: 1 },
      { ...callers, calls: 2 },
      { ...admins, calls: 2 },
    ]);
    expect(denials.every(({ request_id }) => request_id !== "")).toBe(true);
  });

  test("a change beyond a credential's namespaces is an event that names the namespace", async () => {
    const { tenant } = await world().administeredTenant();
    const limited = connectAdmin(world().server, await limitedKey(tenant, "TENANT_ADMIN"), transport);
    await errorOf(resolve(limited, FORGET, MAILS));
    await errorOf(limited.createApiKey({ apiKey: { role: ApiKey_Role.CALLER } }));
    expect(await denialsOf(tenant, 2)).toMatchObject([
      { action: "ResolveRecord", target: "namespace mails", denial: "NAMESPACE_DENIED" },
      { action: "CreateApiKey", target: "", denial: "NAMESPACE_DENIED" },
    ]);
  });

  test("for a caller, RPC and reason, only a minute's first call or read is an event at once", async () => {
    const { tenant } = await world().administeredTenant();
    const keys = [await limitedKey(tenant, "CALLER"), await limitedKey(tenant, "CALLER")];
    const [first, second] = keys.map((key) => connectClient(world().server, key, transport));
    if (first === undefined || second === undefined) throw new Error("a client is missing");
    for (let repeat = 0; repeat < 3; repeat++) {
      for (const client of [first, second]) await errorOf(client.claim(MAILS));
      await errorOf(first.lookup(MAILS));
      await errorOf(connectAdmin(world().server, tenant.apiKey, transport).getTenant({}));
      await errorOf(connectAdmin(world().server, tenant.apiKey, transport).listApiKeys({}));
    }
    const denials = await denialsOf(tenant, 5);
    expect(denials.map(({ action }) => action).sort()).toEqual([
      "Claim",
      "Claim",
      "GetTenant",
      "ListApiKeys",
      "Lookup",
    ]);
  });

  test("in a batch is one event of the batch, and the items are answered", async () => {
    const { tenant } = await world().administeredTenant();
    const client = connectClient(world().server, await limitedKey(tenant, "CALLER"), transport);
    const responses = await runBatch(client, [
      { case: "claim", value: MAILS },
      { case: "claim", value: ORDER },
      { case: "lookup", value: MAILS },
    ]);
    expect(responses.map((response) => response.case)).toEqual(["error", "claim", "error"]);
    expect(await denialsOf(tenant, 1)).toMatchObject([
      { action: "Batch", target: "namespace mails", denial: "NAMESPACE_DENIED" },
    ]);
  });

  test("because the tenant is suspended is an event with the actor", async () => {
    const { admin, adminKey, caller, tenant } = await world().administeredTenant();
    const operator = await world().operator();
    await operator.suspendTenant({ name: tenant.name });
    for (let repeat = 0; repeat < 2; repeat++) {
      expect(await errorOf(caller.claim(ORDER))).toMatchObject({ reason: "TENANT_SUSPENDED" });
      expect(await errorOf(admin.updateTenant({}))).toMatchObject({ reason: "TENANT_SUSPENDED" });
    }
    const denials = await denialsOf(tenant, 2);
    expect(denials.map(({ actor, action }) => ({ actor, action }))).toEqual(
      expect.arrayContaining([
        { actor: parseApiKey(tenant.apiKey)?.id, action: "Claim" },
        { actor: parseApiKey(adminKey)?.id, action: "UpdateTenant" },
      ]),
    );
  });

  test("to an operator is an event of no tenant", async () => {
    const key = await createApiKey(world().database, { role: "OPERATOR" });
    const operator = await world().operator();
    await errorOf(connectAdmin(world().server, key, transport).updateTenant({}));
    const mine = async () => {
      const { events } = await operator.listAuditEvents({ action: "UpdateTenant" });
      return events.filter(({ actor }) => actor === parseApiKey(key)?.id);
    };
    await expect.poll(async () => (await mine()).length).toBe(1);
    expect(await mine()).toMatchObject([{ tenant: "", denial: "ROLE_DENIED" }]);
  });

  test("is stored in a few rows, however many calls are denied, and each call is counted", async () => {
    const server = await startTestServer(world().database.url, {}, { denialWindowMs: 1000 });
    onTestFinished(() => server.stop());
    const { tenant } = await createWorld(world().database, server, transport).administeredTenant();
    const client = connectAdmin(server, tenant.apiKey, transport);
    const calls = 600;
    for (let sent = 0; sent < calls; sent += 100) {
      await Promise.all(Array.from({ length: 100 }, () => errorOf(client.updateTenant({}))));
    }
    const events = () => eventsOf(world().database, tenant);
    const counted = async () => (await events()).reduce((sum, event) => sum + event.calls, 0);
    await expect.poll(counted).toBe(calls);
    // Two for each second that it took.
    expect((await events()).length).toBeLessThan(calls / 10);
  });

  test("is stored for each of two tenants whose callers have the same name", async () => {
    const issuer = await startIssuer();
    onTestFinished(() => issuer.close());
    const server = await startTestServer(world().database.url, { ...issuer.settings });
    onTestFinished(() => server.stop());
    for (let i = 0; i < 2; i++) {
      const { tenant } = await createWorld(world().database, server, transport).administeredTenant();
      const token = await issuer.token({ sub: "worker", onceward_tenant: tenant.name });
      await errorOf(connectAdmin(server, token, transport).getTenant({}));
      expect(await denialsOf(tenant, 1)).toMatchObject([{ actor: "worker", action: "GetTenant" }]);
    }
  });

  test("can be listed with the number of calls", async () => {
    const server = await startTestServer(world().database.url);
    const { admin, tenant } = await world().administeredTenant();
    const client = connectAdmin(server, tenant.apiKey, transport);
    for (let repeat = 0; repeat < 5; repeat++) await errorOf(client.getTenant({}));
    await server.stop();
    const { events } = await admin.listAuditEvents({ action: "GetTenant" });
    expect(events.map(({ calls }) => calls)).toEqual([4, 1]);
  });

  test("is denied at once while the database doesn't answer, and stored once it does", async () => {
    const { proxy, url } = await proxyDatabase(world().database.url);
    const server = await startTestServer(url);
    onTestFinished(() => server.stop());
    const { tenant } = await createWorld(world().database, server, transport).administeredTenant();
    const client = connectAdmin(server, tenant.apiKey, transport);
    await errorOf(client.updateTenant({}));
    await denialsOf(tenant, 1);
    proxy.setMode("hold");
    expect(await errorOf(client.createApiKey({}, { timeoutMs: 2000 }))).toMatchObject({
      reason: "ROLE_DENIED",
    });
    expect(await denialsOf(tenant, 1)).toHaveLength(1);
    proxy.setMode("forward");
    await denialsOf(tenant, 2);
  });

  test("is denied and logged while events can't be stored, then stored with its number", async () => {
    const { database } = world();
    const server = await startTestServer(database.url, {}, { denialWindowMs: 50 });
    try {
      const own = createWorld(database, server, transport);
      const { tenant } = await own.administeredTenant();
      const client = connectAdmin(server, tenant.apiKey, transport);
      await database.query("alter table audit_events rename to audit_events_away");
      const warnings = () =>
        server.log.filter(({ msg }) => msg === "denials could not be written to the audit");
      for (let failures = 1; failures <= 3; failures++) {
        expect(await errorOf(client.updateTenant({}))).toMatchObject({ reason: "ROLE_DENIED" });
        await expect.poll(() => warnings().length).toBeGreaterThanOrEqual(failures);
      }
      expect(JSON.stringify(warnings())).not.toContain(tenant.apiKey);
      await database.query("alter table audit_events_away rename to audit_events");
      expect(await denialsOf(tenant, 1)).toMatchObject([{ action: "UpdateTenant", calls: 3 }]);
    } finally {
      await database.query("alter table if exists audit_events_away rename to audit_events");
      await server.stop();
    }
  });

  test("is stored before the server stops", async () => {
    const server = await startTestServer(world().database.url);
    const { tenant } = await createWorld(world().database, server).administeredTenant();
    const client = connectAdmin(server, tenant.apiKey, transport);
    await Promise.all(Array.from({ length: 20 }, () => errorOf(client.updateTenant({}))));
    await server.stop();
    const calls = (await eventsOf(world().database, tenant)).map((event) => event.calls);
    expect(calls.reduce((sum, count) => sum + count)).toBe(20);
  });
});
