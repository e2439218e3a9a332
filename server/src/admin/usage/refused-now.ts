import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { textArray } from "../../database/sql-arrays.ts";
import { findTenantResource } from "../../database/tenants/tenants.ts";
import { type RefusedNow, RefusedNowSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import type { RefusedOperations } from "./recent-refusals.ts";

const MAX_REFUSED = 100;

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

const readKeyLabels = {
  name: "read_key_labels",
  text: "select id, label from api_keys where id = any ($2::text[]) and tenant_id = $1::int",
};

/** Returns the labels of those of a tenant's API keys that have these ids, revoked ones too. */
export async function findKeyLabels(
  runner: Runner,
  tenantId: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await runner.run<{ id: string; label: string }>(readKeyLabels, [tenantId, textArray(ids)]);
  return new Map(rows.map(({ id, label }) => [id, label]));
}
