import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Runner } from "../../database/pool.ts";
import { findKeyLabels } from "../../database/tenants/api-keys.ts";
import { findTenantResource } from "../../database/tenants/tenants.ts";
import { countFields } from "../../domain/counts.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import { GetUsageNowResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  type RefusedNow,
  RefusedNowSchema,
  type UsageMinute,
  UsageMinuteSchema,
  type UsageNow,
  UsageNowSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { administeredPart } from "../own-tenant.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import type { RefusedOperations } from "./recent-refusals.ts";
import { latencyQuantileMs, namedCounts, RECENT_COUNTERS } from "./recent-use.ts";
import {
  addLastMinutes,
  type LastMinute,
  readLastMinute,
  readMinutes,
  UNUSED,
  type UsedMinute,
} from "./stored-recent-use.ts";

const MAX_NAMESPACES = 100;
const MAX_REFUSED = 100;
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
      const { byNamespace, refused: all } = await readLastMinute(runner, id, latestMs);
      const asked = namespace === "" ? all : all.filter((each) => each.namespace === namespace);
      const refused = await refusedMessages(runner, id, asked);
      if (namespace !== "") {
        const total = nowMessage(namespace, byNamespace.get(namespace) ?? UNUSED);
        return create(GetUsageNowResponseSchema, { total, refused });
      }
      const sorted = [...byNamespace].sort(([, a], [, b]) => callsPerSecond(b) - callsPerSecond(a));
      const minutes = await readMinutes(runner, [id], MINUTES_SHOWN, latestMs);
      return create(GetUsageNowResponseSchema, {
        total: nowMessage("", [...byNamespace.values()].reduce(addLastMinutes, UNUSED)),
        namespaces: sorted.slice(0, MAX_NAMESPACES).map(([name, of]) => nowMessage(name, of)),
        minutes: minutes.map(minuteMessage),
        refused,
      });
    },
  };
}

/** Returns the rate of a last minute's calls: claims, and what quotas refused. */
export function callsPerSecond({ claimsPerSecond, refusedPerSecond }: LastMinute): number {
  return claimsPerSecond + refusedPerSecond;
}

/** The quota of each reason. */
const QUOTAS: Readonly<
  Record<string, "operationsPerSecond" | "concurrentCalls" | "liveRecords" | "storedBytes">
> = {
  QUOTA_RATE: "operationsPerSecond",
  QUOTA_CONCURRENCY: "concurrentCalls",
  QUOTA_RECORDS: "liveRecords",
  QUOTA_BYTES: "storedBytes",
};

/** Returns what was refused to a tenant as callers see it: with the labels of its API keys and its limits. */
export async function refusedMessages(
  runner: Runner,
  tenantId: number,
  refused: readonly RefusedOperations[],
): Promise<RefusedNow[]> {
  if (refused.length === 0) return [];
  const shown = refused.slice(0, MAX_REFUSED);
  const labels = await findKeyLabels(runner, tenantId, [...new Set(shown.map(({ actor }) => actor))]);
  const quotas = (await findTenantResource(runner, tenantId))?.quotas;
  return shown.map(({ operations, ...each }) => {
    const quota = QUOTAS[each.reason];
    const limit = quota && quotas?.[quota];
    return create(RefusedNowSchema, {
      ...each,
      operations: BigInt(operations),
      label: labels.get(each.actor) ?? "",
      ...(limit !== undefined && { limit: BigInt(limit) }),
    });
  });
}

/** Returns a last minute as callers see it. */
export function nowMessage(
  namespace: string,
  { counts, claimsPerSecond, refusedPerSecond }: LastMinute,
): UsageNow {
  const latency = counts.slice(RECENT_COUNTERS.length);
  const medianMs = latencyQuantileMs(latency, 0.5);
  const p99Ms = latencyQuantileMs(latency, 0.99);
  return create(UsageNowSchema, {
    namespace,
    claimsPerSecond,
    refusedPerSecond,
    ...countFields(namedCounts(counts)),
    ...(medianMs !== undefined && { medianLatency: durationFromMs(medianMs) }),
    ...(p99Ms !== undefined && { p99Latency: durationFromMs(p99Ms) }),
  });
}

/** Returns a minute as callers see it. */
export function minuteMessage({ minuteMs, counts, peakCallsPerSecond }: UsedMinute): UsageMinute {
  const {
    claims,
    duplicates,
    mismatches,
    late_keys_refused,
    would_be_refused,
    fenced: _,
    ...refused
  } = namedCounts(counts);
  return create(UsageMinuteSchema, {
    minute: timestamp(minuteMs),
    ...countFields({ claims, duplicates, mismatches, late_keys_refused, would_be_refused }),
    refused: BigInt(Object.values(refused).reduce((sum, count) => sum + count, 0)),
    peakCallsPerSecond,
  });
}
