import { create } from "@bufbuild/protobuf";
import { NAMESPACE_PATTERN } from "../../../core/domain/limits.ts";
import { timestamp, Violations } from "../../../core/messages/violations.ts";
import {
  CountRecordsResponseSchema,
  ListUndeclaredNamespacesResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { pageSize, scanUntil } from "../pages.ts";
import type { TenantAdminOptions, TenantAdminRpcs } from "../services.ts";
import { countRecords, type RecordCounts } from "../store/count-records.ts";
import { findNamespacesInUse } from "../store/list-namespaces-in-use.ts";
import { administeredNamespace, administeredTenant } from "./own-tenant.ts";

/** Namespaces that one statement looks at: each takes some milliseconds on Citus, which asks every shard. */
const NAMESPACES_PER_LOOK = 100;

/** Returns the RPCs that count a tenant's records. */
export function createRecordCountHandlers({
  pool,
  databaseClock,
  pageTokens,
}: TenantAdminOptions): TenantAdminRpcs<"countRecords" | "listUndeclaredNamespaces"> {
  return {
    async countRecords({ namespace, pageToken }, call) {
      const violations = new Violations();
      if (!NAMESPACE_PATTERN.test(namespace)) {
        violations.add("namespace", `must match ${NAMESPACE_PATTERN.source}`);
      }
      const { id: tenantId } = administeredNamespace(call, namespace);
      const scope = [tenantId, "CountRecords", namespace];
      const [afterKey = ""] = pageTokens.read(scope, pageToken, violations) ?? [];
      violations.throwIfAny();

      const { items, next } = await scanUntil(Number.POSITIVE_INFINITY, afterKey, async (after: string) => {
        const range = { tenantId, namespace, afterKey: after };
        const counted = await countRecords(pool.of(call), range, databaseClock.latestMs());
        return { items: [counted.counts], next: counted.next };
      });
      const { oldestAmbiguousSinceMs, ...counts } = items.reduce(sum);
      return create(CountRecordsResponseSchema, {
        ...mapValues(counts, BigInt),
        ...(oldestAmbiguousSinceMs !== undefined && {
          oldestAmbiguousSince: timestamp(oldestAmbiguousSinceMs),
        }),
        ...(next !== undefined && { nextPageToken: pageTokens.write(scope, [next]) }),
      });
    },

    async listUndeclaredNamespaces(request, call) {
      const { id: tenantId } = administeredTenant(call);
      const violations = new Violations();
      const scope = [tenantId, "ListUndeclaredNamespaces"];
      const size = pageSize(request.pageSize, violations);
      const [afterName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const { items, next } = await scanUntil(size + 1, afterName, async (after: string) => {
        const found = await findNamespacesInUse(pool.of(call), tenantId, after, NAMESPACES_PER_LOOK);
        const last = found.length === NAMESPACES_PER_LOOK ? found.at(-1)?.name : undefined;
        return { items: found.flatMap(({ name, declared }) => (declared ? [] : [name])), next: last };
      });
      const names = items.slice(0, size);
      const end = items.length > size ? names.at(-1) : next;
      return create(ListUndeclaredNamespacesResponseSchema, {
        names,
        ...(end !== undefined && { nextPageToken: pageTokens.write(scope, [end]) }),
      });
    },
  };
}

function sum(one: RecordCounts, other: RecordCounts): RecordCounts {
  const since = [one.oldestAmbiguousSinceMs, other.oldestAmbiguousSinceMs].filter((ms) => ms !== undefined);
  return {
    inProgress: one.inProgress + other.inProgress,
    lapsed: one.lapsed + other.lapsed,
    completed: one.completed + other.completed,
    released: one.released + other.released,
    ambiguous: one.ambiguous + other.ambiguous,
    oldestAmbiguousSinceMs: since.length === 0 ? undefined : Math.min(...since),
  };
}

function mapValues<Key extends string>(
  counts: Readonly<Record<Key, number>>,
  convert: (count: number) => bigint,
): Record<Key, bigint> {
  const entries = Object.entries<number>(counts).map(([name, count]) => [name, convert(count)]);
  return Object.fromEntries(entries) as Record<Key, bigint>;
}
