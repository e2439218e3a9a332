import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { connectAdmin, describeAdministration } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { grant, seconds } from "../support/calls/verbs.ts";
import { openConnection, untilBlocked } from "../support/database/connections.ts";
import { createApiKey, createTenant, type PolicyColumns } from "../support/servers/tenants.ts";

describeAdministration(
  "administration",
  (world, transport) => {
    async function newTenant(quotas: PolicyColumns = {}) {
      const { database, server } = world();
      const tenant = await createTenant(database, quotas);
      const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
      return {
        tenant,
        admin: connectAdmin(server, adminKey, transport),
        caller: connectClient(server, tenant.apiKey, transport),
      };
    }

    /** Keeps a tenant's row locked, so that every change of it waits, until the function is called. */
    async function lockTenantRow(id: number): Promise<() => Promise<unknown>> {
      const connection = await openConnection(world().database);
      await connection.query("begin");
      await connection.query("select from tenants where id = $1 for update", [id]);
      return () => connection.query("rollback");
    }

    test("is refused beyond the tenant's rate, to which its callers' calls don't count", async () => {
      const { admin, caller } = await newTenant({ quota_operations_per_second: 1, quota_burst: 1 });
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
      const { tenant, admin, caller } = await newTenant({ quota_concurrent_calls: 1 });
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
      const { tenant, admin } = await newTenant();
      const { caller } = await newTenant();
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
  },
  { ONCEWARD_POOL_SIZE: "2" },
);
