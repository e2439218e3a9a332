import { findAuditEvents } from "../../../server/src/admin/audit/list-audit-events.ts";
import { countNamespaces, listNamespaceResources } from "../../../server/src/admin/namespaces/namespaces.ts";
import { findNamespacesInUse } from "../../../server/src/admin/namespaces/namespaces-in-use.ts";
import { countPage } from "../../../server/src/admin/records/count-records.ts";
import { findKey, findKeyPrefix } from "../../../server/src/admin/records/find-key.ts";
import type { Pool } from "../../../server/src/database/pool.ts";
import { CROWDED_TENANT, crowdedKey } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH_ROWS } from "./rows.ts";

const PREFIX = {
  ...{ tenantId: CROWDED_TENANT, namespace: undefined, state: undefined, keyPrefix: "key-1", key: "" },
  ...{ owner: "", checkpoint: "" },
};

function listEvents(pool: Pool, tenant: number | string | undefined) {
  const all = { afterMs: undefined, beforeMs: undefined, actor: "", target: "", denied: undefined };
  const filter = { ...all, tenant, action: "none such", withoutSignIns: true };
  return findAuditEvents(pool, filter, [], BATCH_ROWS);
}

/** Statements of what tenant admins and operators read and change. */
export const ADMINISTRATION_WORK: ExplainedWork = {
  byKeys: {
    "find a key": (pool) => findKey(pool, { tenantId: CROWDED_TENANT, key: crowdedKey(7) }, "", BATCH_ROWS),
    "list namespaces": (pool) => listNamespaceResources(pool, CROWDED_TENANT, "", BATCH_ROWS),
  },
  overARange: {
    "find the beginning of a key": (pool) =>
      findKeyPrefix(pool, PREFIX, { namespace: "", key: "" }, BATCH_ROWS),
    "count records": (pool) =>
      countPage(pool, { tenantId: CROWDED_TENANT, namespace: "charges", afterKey: "" }),
    "list namespaces in use": (pool) => findNamespacesInUse(pool, CROWDED_TENANT, "", BATCH_ROWS),
    "list a tenant's audit events": (pool) => listEvents(pool, CROWDED_TENANT),
    "list audit events of a tenant's name": (pool) => listEvents(pool, "tenant-1"),
    "list all audit events": (pool) => listEvents(pool, undefined),
    "count a tenant's namespaces": (pool) => countNamespaces(pool, CROWDED_TENANT, BATCH_ROWS),
  },
  onOneRow: ["read_namespaces", "put_namespace", "delete_namespace", "read_past_attempts"],
};
