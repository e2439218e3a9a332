import { listKeyResources } from "../../../server/src/admin/keys/list-api-keys.ts";
import { revokeApiKeys } from "../../../server/src/admin/tenants/delete-tenant.ts";
import { listTenantNames } from "../../../server/src/admin/usage/rank-tenants.ts";
import { findKeyLabels } from "../../../server/src/admin/usage/refused-now.ts";
import { pruneRows } from "../../../server/src/database/prune.ts";
import {
  findApiKeys,
  storeApiKeyUse,
  storeKeyDigest,
} from "../../../server/src/database/tenants/api-keys.ts";
import { insertAuditEvents } from "../../../server/src/database/tenants/audit-events.ts";
import {
  addTotals,
  countRecordsPage,
  FROM_THE_START,
  storeCountedTotals,
  takeCount,
} from "../../../server/src/database/tenants/tenant-totals.ts";
import {
  createFindTenants,
  ensureTenant,
  findLabelledTenants,
  findTenantIds,
  findTenantResource,
  findTenantResources,
  listTenantResources,
} from "../../../server/src/database/tenants/tenants.ts";
import { findNamed, listTenants } from "../../../server/src/history-export/export-history.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, BATCH_ROWS, NO_DEADLINE, TENANTS } from "./rows.ts";

const KEY_IDS = TENANTS.map((n) => `key-${n}`);

/** Statements of tenants, their keys, totals and audit. */
export const TENANTS_WORK: ExplainedWork = {
  byKeys: {
    "add to totals": (pool) =>
      addTotals(
        pool,
        TENANTS.map((tenantId) => ({ tenantId, records: 1, storedBytes: 1 })),
      ),
    "store a count": (pool) =>
      storeCountedTotals(pool, { tenantId: CROWDED_TENANT, records: 1, storedBytes: 1 }, 1000),
    "take a tenant to count": (pool) => takeCount(pool),
    "count a page": (pool) => countRecordsPage(pool, CROWDED_TENANT, FROM_THE_START, BATCH_ROWS),
    "read tenants": (pool) => createFindTenants(pool)(TENANTS.slice(1)),
    "read tenants by name": (pool) =>
      findTenantIds(
        pool,
        TENANTS.map((id) => `tenant-${id}`),
      ),
    "read a tenant": (pool) => findTenantResource(pool, CROWDED_TENANT),
    "list tenants": (pool) => listTenantResources(pool, "", BATCH_ROWS),
    "list tenants' names": (pool) => listTenantNames(pool, "", BATCH_ROWS),
    "find tenants": (pool) => findTenantResources(pool, TENANTS),
    "load the policies of namespaces": async (pool) => {
      const tenant = (await createFindTenants(pool)([CROWDED_TENANT])).get(CROWDED_TENANT);
      await tenant?.namespaces.load(
        BATCH.slice(0, 200).map((n) => `namespace-${n}`),
        NO_DEADLINE,
      );
    },
    "create a tenant": (pool) => ensureTenant(pool, "other"),
    "list API keys": (pool) => listKeyResources(pool, CROWDED_TENANT, ["infinity", ""], BATCH_ROWS),
    "read API keys": (pool) => findApiKeys(pool, KEY_IDS),
    "read labels of API keys": (pool) => findKeyLabels(pool, CROWDED_TENANT, KEY_IDS),
    "write audit events": (pool) =>
      insertAuditEvents(
        pool,
        TENANTS.map((id) => ({
          tenant: { id, name: `tenant-${id}` },
          actor: "key:1",
          action: "UpdateTenant",
          target: "",
          denial: undefined,
          reason: "",
          before: undefined,
          after: undefined,
          requestId: "",
          calls: 1,
        })),
      ),
    "store the use of keys": (pool) => storeApiKeyUse(pool, KEY_IDS),
    "store a key's digest": (pool) =>
      storeKeyDigest(pool, "key-1", Buffer.alloc(32), {
        digest: Buffer.alloc(32),
        pepperMark: Buffer.alloc(32),
      }),
  },
  overARange: {
    "list labelled tenants": (pool) => findLabelledTenants(pool, BATCH_ROWS),
    "prune audit events": (pool) => pruneRows(pool, "audit_events", 0, BATCH_ROWS),
    "revoke API keys": (pool) => pool.run(revokeApiKeys, [CROWDED_TENANT]),
    "list the tenants that an export has": (pool) => pool.run(listTenants, []),
    "find the tenants that an export can mean": (pool) => pool.run(findNamed, ["{acme}"]),
  },
  onOneRow: [
    "insert_api_key",
    "revoke_api_key",
    "lock_tenant",
    "read_tenant_by_name",
    "find_exported_tenant",
    "lock_tenant_by_name",
    "insert_tenant",
    "update_tenant",
  ],
};
