import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { countFields } from "../../../core/messages/counts.ts";
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
import { latencyQuantileMs, namedCounts, RECENT_COUNTERS } from "../recent-use.ts";
import {
  addLastMinutes,
  type LastMinute,
  readLastMinute,
  readMinutes,
  UNUSED,
  type UsedMinute,
} from "../store/recent-use.ts";

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
  const latency = counts.slice(RECENT_COUNTERS.length);
  const medianMs = latencyQuantileMs(latency, 0.5);
  const p99Ms = latencyQuantileMs(latency, 0.99);
  return create(UsageNowSchema, {
    namespace,
    claimsPerSecond,
    ...countFields(namedCounts(counts)),
    ...(medianMs !== undefined && { medianLatency: durationFromMs(medianMs) }),
    ...(p99Ms !== undefined && { p99Latency: durationFromMs(p99Ms) }),
  });
}

/** Returns a minute as callers see it. */
export function minuteMessage({ minuteMs, counts, peakClaimsPerSecond }: UsedMinute): UsageMinute {
  const { claims, duplicates, mismatches, late_keys_refused, would_be_refused, ...refused } =
    namedCounts(counts);
  return create(UsageMinuteSchema, {
    minute: timestamp(minuteMs),
    ...countFields({ claims, duplicates, mismatches, late_keys_refused, would_be_refused }),
    refused: BigInt(Object.values(refused).reduce((sum, count) => sum + count, 0)),
    peakClaimsPerSecond,
  });
}
