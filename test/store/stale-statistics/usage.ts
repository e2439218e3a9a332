import { addUsage } from "../../../server/src/admin/usage/add-usage.ts";
import { readUsage, sumUsage } from "../../../server/src/admin/usage/get-usage.ts";
import { readLastMinute, readLastMinutes } from "../../../server/src/admin/usage/last-minute.ts";
import { countLateRepeats } from "../../../server/src/admin/usage/late-repeats.ts";
import { findTenantUse } from "../../../server/src/admin/usage/list-tenant-usage.ts";
import { sumRecentUse } from "../../../server/src/admin/usage/rank-tenants.ts";
import { sumUsageOfDay } from "../../../server/src/admin/usage/tenant-metrics.ts";
import { USAGE_COUNTERS } from "../../../server/src/admin/usage/usage.ts";
import { storeRecentUse } from "../../../server/src/admin/usage/usage-flusher.ts";
import { readMinutes } from "../../../server/src/admin/usage/used-minutes.ts";
import { pruneRows } from "../../../server/src/database/prune.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, BATCH_ROWS, TENANTS, tombstoneHash } from "./rows.ts";

/** Of one of the 1,000 namespaces that each hour has. */
export const USAGE_OF_NAMESPACE = {
  tenantId: CROWDED_TENANT,
  namespace: "namespace-7",
  afterMs: 0,
  beforeMs: undefined,
  behind: undefined,
  limit: BATCH_ROWS,
};

/** Two buckets of lateness. */
const ONE_IN_EACH = new Map([
  [0, 1],
  [7, 1],
]);

/** Statements of usage and late repeats. */
export const USAGE_WORK: ExplainedWork = {
  byKeys: {
    "add usage": (pool) =>
      addUsage(
        pool,
        { replica: { id: crypto.randomUUID(), version: "1" }, seq: 1 },
        TENANTS.map((tenantId) => ({
          tenantId,
          namespace: "charges",
          counters: Object.fromEntries(USAGE_COUNTERS.map((name) => [name, 1])) as Record<
            (typeof USAGE_COUNTERS)[number],
            number
          >,
          latency: [],
          retentions: [
            { retentionS: 60, claims: 1, firstClaims: 1, repeats: ONE_IN_EACH, late: ONE_IN_EACH },
          ],
        })),
      ),
    "read usage": (pool) => readUsage(pool, { ...USAGE_OF_NAMESPACE, namespace: undefined }),
    "sum usage": (pool) =>
      sumUsage(pool, {
        tenantId: CROWDED_TENANT,
        namespace: undefined,
        afterMs: 0,
        beforeMs: undefined,
        behindMs: 0,
        limit: 2,
      }),
    "read usage of a namespace": (pool) => readUsage(pool, USAGE_OF_NAMESPACE),
    "count late repeats": (pool) =>
      countLateRepeats(
        pool,
        BATCH.map((n) => ({
          tenantId: CROWDED_TENANT,
          namespace: "charges",
          keyHash: tombstoneHash(n),
          depth: 3,
          atMs: Date.now(),
          retentionS: 60,
          shift: 0,
        })),
      ),
  },
  overARange: {
    "store recent use": (pool) =>
      storeRecentUse(pool, {
        replicaId: crypto.randomUUID(),
        validForMs: 60_000,
        lastMinute: { seconds: 5, counts: { 1: { charges: [1] } } },
        ended: [{ minuteMs: 0, counts: { 1: [1] } }],
        refused: {},
      }),
    "read the last minute": (pool) => readLastMinute(pool, CROWDED_TENANT),
    "read all last minutes": (pool) => readLastMinutes(pool),
    "sum the day's usage": (pool) => sumUsageOfDay(pool, CROWDED_TENANT, undefined),
    "read minutes": (pool) => readMinutes(pool, TENANTS, 60),
    "read tenants' use": (pool) => findTenantUse(pool, [CROWDED_TENANT]),
    "sum all tenants' recent use": (pool) => sumRecentUse(pool),
    "prune usage": (pool) => pruneRows(pool, "usage_hours", 0, BATCH_ROWS),
  },
};
