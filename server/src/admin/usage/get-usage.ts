import { create } from "@bufbuild/protobuf";
import { countFields } from "../../domain/counts.ts";
import { duration, timestamp, Violations } from "../../domain/violations.ts";
import { GetUsageRequest_Grouping, GetUsageResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  type LatenessBucket,
  LatenessBucketSchema,
  type UsageHour,
  UsageHourSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { administeredPart } from "../own-tenant.ts";
import { pageSize, replyPage, scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { LAST_LATENESS_BUCKET, type LatenessCounts, latenessLimitMs } from "./lateness.ts";
import { readUsage, sumUsage, type UsageHourRow, type UsageSum } from "./stored-usage.ts";

/** With 10,000 namespaces, one statement adds 60,000 rows: some tens of milliseconds. */
const HOURS_AT_ONCE = 6;

/** What an entry is of. */
const GROUPINGS: Readonly<Record<number, "hour" | "hourAndNamespace">> = {
  [GetUsageRequest_Grouping.UNSPECIFIED]: "hourAndNamespace",
  [GetUsageRequest_Grouping.HOUR]: "hour",
};

/** Returns the RPC for usage. */
export function createUsageHandlers({
  pool,
  pageTokens,
  databaseClock,
}: AdministrationParts): TenantAdminRpcs<"getUsage"> {
  return {
    async getUsage(request, call) {
      const { namespace } = request;
      const violations = new Violations();
      const own = administeredPart(call, namespace, violations);
      const limit = pageSize(request.pageSize, violations);
      const beforeMs = violations.timestampMs("before", request.before);
      const afterMs = violations.timestampMs("after", request.after);
      const grouping = GROUPINGS[request.grouping];
      if (grouping === undefined) violations.add("grouping", "must be a grouping of usage");
      const scope = [own.id, "GetUsage", namespace, beforeMs, afterMs, grouping];
      const [hourMs, lastNamespace] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const query = { tenantId: own.id, namespace: namespace || undefined, afterMs, beforeMs };
      const runner = pool.of(call);
      const latestMs = databaseClock.latestMs();
      if (grouping === "hour") {
        const from = Number(hourMs ?? 0);
        const { items, next } = await scanUntil<UsageSum, number>(limit, from, (behindMs, count) =>
          sumUsage(runner, { ...query, behindMs, limit: Math.min(count, HOURS_AT_ONCE) }, latestMs),
        );
        return create(GetUsageResponseSchema, {
          hours: items.map((sum) => create(UsageHourSchema, { namespace, ...usageSum(sum) })),
          ...(next !== undefined && { nextPageToken: pageTokens.write(scope, [String(next)]) }),
        });
      }
      const behind =
        lastNamespace === undefined ? undefined : { hourMs: Number(hourMs), namespace: lastNamespace };
      const found = await readUsage(runner, { ...query, behind, limit: limit + 1 }, latestMs);
      const { messages, last } = replyPage(found, limit, UsageHourSchema, usageHour);
      return create(GetUsageResponseSchema, {
        hours: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [String(last.hourMs), last.namespace]) }),
      });
    },
  };
}

function usageHour({ namespace, repeats, ...sum }: UsageHourRow): UsageHour {
  return create(UsageHourSchema, {
    namespace,
    ...usageSum(sum),
    repeatLateness: latenessBuckets(repeats),
  });
}

function usageSum({ hourMs, counters }: UsageSum) {
  return { hour: timestamp(hourMs), ...countFields(counters) };
}

/** Returns the buckets that have repeats, and the last one. */
function latenessBuckets(repeats: LatenessCounts): LatenessBucket[] {
  const last: [number, number][] = repeats.has(LAST_LATENESS_BUCKET) ? [] : [[LAST_LATENESS_BUCKET, 0]];
  return [...repeats, ...last].map(latenessMessage);
}

/** Returns a bucket of repeats as callers see it. */
export function latenessMessage([bucket, repeats]: readonly [
  bucket: number,
  repeats: number,
]): LatenessBucket {
  const limitMs = latenessLimitMs(bucket);
  return create(LatenessBucketSchema, {
    repeats: BigInt(repeats),
    ...(limitMs !== undefined && { upTo: duration(limitMs) }),
  });
}
