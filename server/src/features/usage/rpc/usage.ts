import { create } from "@bufbuild/protobuf";
import { duration, timestamp, Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import {
  type GetUsageRequest,
  GetUsageRequest_Grouping,
  GetUsageResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  type LatenessBucket,
  LatenessBucketSchema,
  type UsageHour,
  UsageHourSchema,
} from "../../../gen/onceward/v1/tenant_pb.ts";
import { pageSize, replyPage, scanUntil } from "../../administration/pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../../administration/services.ts";
import { administeredPart } from "../../administration/tenant/own-tenant.ts";
import { LAST_LATENESS_BUCKET, type LatenessCounts, latenessLimitMs } from "../lateness.ts";
import { readUsage, type UsageHourRow } from "../store/usage.ts";
import { type FoundSums, sumUsage, type UsageSum, type UsageSumQuery } from "../store/usage-sums.ts";
import { EARLIER_LATENESS_LIMITS_MS } from "../usage.ts";

/** With 10,000 namespaces, one statement adds 60,000 rows: some tens of milliseconds. */
const HOURS_AT_ONCE = 6;

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
      const grouping = parseGrouping(request, violations);
      const scope = [own.id, "GetUsage", namespace, beforeMs, afterMs, grouping];
      const [hourMs, lastNamespace] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const query = { tenantId: own.id, namespace: namespace || undefined, afterMs, beforeMs };
      const runner = pool.of(call);
      const latestMs = databaseClock.latestMs();
      if (grouping === "hour") {
        const { sums, nextMs } = await findSums(
          runner,
          { ...query, behindMs: Number(hourMs ?? 0), limit },
          latestMs,
        );
        return create(GetUsageResponseSchema, {
          hours: sums.map((sum) => create(UsageHourSchema, { namespace, ...usageSum(sum) })),
          ...(nextMs !== undefined && { nextPageToken: pageTokens.write(scope, [String(nextMs)]) }),
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

/** Returns sums until there are enough of them, or until the time of one call is up. */
async function findSums(
  runner: Runner,
  query: UsageSumQuery,
  latestMs: number | undefined,
): Promise<FoundSums> {
  const { items, next } = await scanUntil(query.limit, query.behindMs, async (behindMs: number, count) => {
    const limit = Math.min(count, HOURS_AT_ONCE);
    const { sums, nextMs } = await sumUsage(runner, { ...query, behindMs, limit }, latestMs);
    return { items: sums, next: nextMs };
  });
  return { sums: items, nextMs: next };
}

/** Parses what an entry is of. Adds a violation for an unknown grouping. */
function parseGrouping({ grouping }: GetUsageRequest, violations: Violations): "hour" | "hourAndNamespace" {
  switch (grouping) {
    case GetUsageRequest_Grouping.UNSPECIFIED:
      return "hourAndNamespace";
    case GetUsageRequest_Grouping.HOUR:
      return "hour";
    default:
      violations.add("grouping", "must be a grouping of usage");
      return "hourAndNamespace";
  }
}

function usageHour({ namespace, repeats, earlierRepeats, ...sum }: UsageHourRow): UsageHour {
  return create(UsageHourSchema, {
    namespace,
    ...usageSum(sum),
    repeatLateness: [...latenessBuckets(repeats), ...earlierBuckets(earlierRepeats)],
  });
}

function usageSum({ hourMs, counters }: UsageSum) {
  return {
    hour: timestamp(hourMs),
    claims: BigInt(counters.claims),
    granted: BigInt(counters.granted),
    replayed: BigInt(counters.replayed),
    inProgress: BigInt(counters.in_progress),
    ambiguous: BigInt(counters.ambiguous),
    mismatches: BigInt(counters.mismatches),
    reclaims: BigInt(counters.reclaims),
    fenced: BigInt(counters.fenced),
    completions: BigInt(counters.completions),
    swept: BigInt(counters.swept),
    lateKeysRefused: BigInt(counters.late_keys_refused),
    lateKeysGranted: BigInt(counters.late_keys_granted),
    withoutKeyTime: BigInt(counters.without_key_time),
    refusedByRate: BigInt(counters.refused_by_rate),
    refusedByConcurrency: BigInt(counters.refused_by_concurrency),
    refusedByRecords: BigInt(counters.refused_by_records),
    refusedByBytes: BigInt(counters.refused_by_bytes),
    wouldBeRefused: BigInt(counters.would_be_refused),
  };
}

/** Returns the buckets that have repeats, and the last one. */
function latenessBuckets(repeats: LatenessCounts): readonly LatenessBucket[] {
  const last: [number, number][] = repeats.has(LAST_LATENESS_BUCKET) ? [] : [[LAST_LATENESS_BUCKET, 0]];
  return [...repeats, ...last].map(([bucket, count]) => latenessMessage(latenessLimitMs(bucket), count));
}

/** Returns the repeats that an earlier version of the server counted in the same hour, in its buckets. */
function earlierBuckets(repeats: readonly number[]): readonly LatenessBucket[] {
  if (repeats.every((count) => count === 0)) return [];
  return repeats.map((count, bucket) => latenessMessage(EARLIER_LATENESS_LIMITS_MS[bucket], count));
}

function latenessMessage(limitMs: number | undefined, repeats: number): LatenessBucket {
  return create(LatenessBucketSchema, {
    repeats: BigInt(repeats),
    ...(limitMs !== undefined && { upTo: duration(limitMs) }),
  });
}
