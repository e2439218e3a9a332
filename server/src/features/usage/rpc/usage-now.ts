import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { timestamp, Violations } from "../../../core/messages/violations.ts";
import { GetUsageNowResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  type UsageMinute,
  UsageMinuteSchema,
  type UsageNow,
  UsageNowSchema,
} from "../../../gen/onceward/v1/tenant_pb.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../../administration/services.ts";
import { administeredPart } from "../../administration/tenant/own-tenant.ts";
import { latencyQuantileMs, RECENT_COUNTERS, type RecentCounts } from "../recent-use.ts";
import {
  addLastMinutes,
  type LastMinute,
  readLastMinute,
  readMinutes,
  UNUSED,
  type UsedMinute,
} from "../store/recent-use.ts";
import { QUOTA_REFUSALS } from "../usage.ts";

const MAX_NAMESPACES = 100;
/** Of a tenant's minutes that have ended. */
export const MINUTES_SHOWN = 60;

/** Returns the RPC for what happens now. */
export function createUsageNowHandlers({
  pool,
  databaseClock,
}: AdministrationParts): TenantAdminRpcs<"getUsageNow"> {
  return {
    async getUsageNow({ namespace }, call) {
      const violations = new Violations();
      const { id } = administeredPart(call, namespace, violations);
      violations.throwIfAny();

      const runner = pool.of(call);
      const latestMs = databaseClock.latestMs();
      const byNamespace = await readLastMinute(runner, id, latestMs);
      if (namespace !== "") {
        const total = nowMessage(namespace, byNamespace.get(namespace) ?? UNUSED);
        return create(GetUsageNowResponseSchema, { total });
      }
      const sorted = [...byNamespace].sort(([, a], [, b]) => b.claimsPerSecond - a.claimsPerSecond);
      const minutes = await readMinutes(runner, [id], MINUTES_SHOWN, latestMs);
      return create(GetUsageNowResponseSchema, {
        total: nowMessage("", [...byNamespace.values()].reduce(addLastMinutes, UNUSED)),
        namespaces: sorted.slice(0, MAX_NAMESPACES).map(([name, of]) => nowMessage(name, of)),
        minutes: minutes.map(minuteMessage),
      });
    },
  };
}

/** Returns a last minute as callers see it. */
export function nowMessage(namespace: string, { counts, claimsPerSecond }: LastMinute): UsageNow {
  const count = counterOf(counts);
  const latency = counts.slice(RECENT_COUNTERS.length);
  const medianMs = latencyQuantileMs(latency, 0.5);
  const p99Ms = latencyQuantileMs(latency, 0.99);
  return create(UsageNowSchema, {
    namespace,
    claimsPerSecond,
    claims: count("claims"),
    duplicates: count("duplicates"),
    mismatches: count("mismatches"),
    lateKeysRefused: count("late_keys_refused"),
    refusedByRate: count("refused_by_rate"),
    refusedByConcurrency: count("refused_by_concurrency"),
    refusedByRecords: count("refused_by_records"),
    refusedByBytes: count("refused_by_bytes"),
    wouldBeRefused: count("would_be_refused"),
    ...(medianMs !== undefined && { medianLatency: durationFromMs(medianMs) }),
    ...(p99Ms !== undefined && { p99Latency: durationFromMs(p99Ms) }),
  });
}

/** Returns a minute as callers see it. */
export function minuteMessage({ minuteMs, counts, peakClaimsPerSecond }: UsedMinute): UsageMinute {
  const count = counterOf(counts);
  return create(UsageMinuteSchema, {
    minute: timestamp(minuteMs),
    claims: count("claims"),
    duplicates: count("duplicates"),
    mismatches: count("mismatches"),
    lateKeysRefused: count("late_keys_refused"),
    refused: QUOTA_REFUSALS.reduce((sum, name) => sum + count(name), 0n),
    wouldBeRefused: count("would_be_refused"),
    peakClaimsPerSecond,
  });
}

function counterOf(counts: RecentCounts) {
  return (name: (typeof RECENT_COUNTERS)[number]) => BigInt(counts[RECENT_COUNTERS.indexOf(name)] ?? 0);
}
