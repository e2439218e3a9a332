import { create } from "@bufbuild/protobuf";
import { timestamp, Violations } from "../../../core/messages/violations.ts";
import { CountRecordsResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { countRecords, type RecordCounts } from "../store/count-records.ts";
import { administeredNamespace } from "./own-tenant.ts";

/** Returns the RPC that counts a namespace's records by their state. */
export function createCountRecords({
  pool,
  databaseClock,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"countRecords"> {
  return {
    async countRecords({ namespace, pageToken }, call) {
      const violations = new Violations();
      violations.name("namespace", namespace);
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
