import { create } from "@bufbuild/protobuf";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { intArray } from "../../database/sql-arrays.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import {
  ListTenantUsageRequest_Order,
  ListTenantUsageResponseSchema,
  TenantUsageSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { type RefusedNow, Tenant_State } from "../../gen/onceward/v1/tenant_pb.ts";
import { pageSize, replyPage } from "../pages.ts";
import { QUOTA_MESSAGES } from "../policy-messages.ts";
import type { OperatorRpc } from "../services.ts";
import { type LastMinute, nowMessage, readLastMinute, readLastMinutes, UNUSED } from "./last-minute.ts";
import { findNamed, rankTenants, type TenantOrder } from "./rank-tenants.ts";
import { attempts } from "./recent-use.ts";
import { refusedMessages } from "./refused-now.ts";
import { REFUSED_SUM } from "./usage.ts";
import { MINUTES_SHOWN, minuteMessage, readMinutes, type UsedMinute } from "./used-minutes.ts";

/** Each tenant takes some index ranges; a page of so many takes some tens of milliseconds. */
const MAX_TENANTS = 200;
/** A tenant's longest name. */
const MAX_SEARCH_BYTES = 63;
/** How long a short rush is remembered, which a new limit would refuse. */
const BUSIEST_OF_MINUTES = 15;

const ORDERS: Readonly<Record<number, TenantOrder>> = {
  [ListTenantUsageRequest_Order.UNSPECIFIED]: "name",
  [ListTenantUsageRequest_Order.RATE]: "rate",
  [ListTenantUsageRequest_Order.REFUSED]: "refused",
  [ListTenantUsageRequest_Order.USAGE]: "usage",
};

/** Returns a page of tenants' use beside their quotas. */
export const listTenantUsage: OperatorRpc<"listTenantUsage"> = async (request, _call, parts) => {
  const { pool, pageTokens, databaseClock } = parts;
  const violations = new Violations();
  const { search, tenant: name } = request;
  if (name !== "") violations.name("tenant", name);
  violations.text("search", search, { maxBytes: MAX_SEARCH_BYTES });
  const order = ORDERS[request.order] ?? "name";
  if (!(request.order in ORDERS)) violations.add("order", "must be an order of tenants");
  const scope = ["ListTenantUsage", name, search, order];
  const size = Math.min(pageSize(request.pageSize, violations), MAX_TENANTS);
  const [afterName = "", afterValue = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
  violations.throwIfAny();

  const latestMs = databaseClock.latestMs();
  const lastMinutes = await readLastMinutes(pool, latestMs);
  const after = afterName === "" ? undefined : { name: afterName, value: Number(afterValue) };
  const { found, rankOf } =
    name === ""
      ? await rankTenants(pool, { search, order, after, count: size + 1, lastMinutes, latestMs })
      : await findNamed(pool, name);
  const ids = found.slice(0, size).map(({ id }) => id);
  const [use, busiest, minutes, refused] = await Promise.all([
    findTenantUse(pool, ids, latestMs),
    findBusiestMinutes(pool, ids, latestMs),
    name === "" ? [] : readMinutes(pool, ids, MINUTES_SHOWN, latestMs),
    name === "" ? [] : findRefused(pool, ids, latestMs),
  ]);
  const { messages, last } = replyPage(found, size, TenantUsageSchema, (tenant) =>
    usageMessage(tenant, {
      use: use.get(tenant.id),
      now: lastMinutes.get(tenant.id),
      busiest: busiest.get(tenant.id),
      minutes,
      refused,
    }),
  );
  return create(ListTenantUsageResponseSchema, {
    tenants: messages,
    ...(last && { nextPageToken: pageTokens.write(scope, [last.name, String(rankOf(last.id))]) }),
  });
};

/** What a tenant uses of its quotas. Undefined totals: the tenant has no quota of them, so they are not counted. */
interface TenantUse {
  readonly tenantId: number;
  readonly liveRecords: number | undefined;
  readonly storedBytes: number | undefined;
  readonly declaredNamespaces: number;
  readonly unfinishedJobs: number;
  /** Answered claims since `recentSinceMs`, the begin of the last full hour, in milliseconds since the Unix epoch. */
  readonly recentClaims: number;
  readonly recentSinceMs: number;
  /** Of the same hours: refused by a quota, and beyond one that refuses nothing. */
  readonly recentRefused: number;
  readonly recentWouldBeRefused: number;
}

const readTenantUse = {
  name: "read_tenant_use",
  text: `
with recent as materialized (
  select date_trunc('hour', ${nowBy("$2")} at time zone 'utc') at time zone 'utc'
         - interval '1 hour' as since
)
select i.tenant_id as "tenantId", c.records::numeric as "liveRecords", c.stored_bytes::numeric as "storedBytes",
       (select count(*) from namespaces n where n.tenant_id = i.tenant_id)::int as "declaredNamespaces",
       (select count(*) from record_jobs j where j.tenant_id = i.tenant_id and j.finished_at is null)::int
         as "unfinishedJobs",
       hours.claims::numeric as "recentClaims", hours.refused::numeric as "recentRefused",
       hours.would_be_refused::numeric as "recentWouldBeRefused",
       extract(epoch from recent.since) * 1000 as "recentSinceMs"
  from unnest($1::int[]) as i (tenant_id)
 cross join recent
 cross join lateral (
       select coalesce(sum(u.claims), 0) as claims,
              coalesce(sum(${REFUSED_SUM}), 0) as refused,
              coalesce(sum(u.would_be_refused), 0) as would_be_refused
         from usage_hours u
        where u.tenant_id = i.tenant_id
          and u.hour >= recent.since) hours
  left join lateral (
       select t.records, t.stored_bytes
         from tenant_totals t
        where t.tenant_id = i.tenant_id
          and t.count_due_at > '-infinity'
        limit 1) c on true`,
};

/**
 * Returns the use of tenants, by their ids.
 *
 * @param latestMs as DatabaseClock.
 */
export async function findTenantUse(
  runner: Runner,
  ids: readonly number[],
  latestMs?: number,
): Promise<ReadonlyMap<number, TenantUse>> {
  const rows = await runner.run<RowOf<TenantUse>>(readTenantUse, [intArray(ids), latestMs ?? null]);
  return new Map(rows.map((row) => [row.tenantId, fromRow<TenantUse>(row)]));
}

async function findRefused(
  pool: Runner,
  ids: readonly number[],
  latestMs: number | undefined,
): Promise<readonly RefusedNow[]> {
  const found = ids.map(async (id) =>
    refusedMessages(pool, id, (await readLastMinute(pool, id, latestMs)).refused),
  );
  return (await Promise.all(found)).flat();
}

async function findBusiestMinutes(
  pool: Runner,
  ids: readonly number[],
  latestMs: number | undefined,
): Promise<ReadonlyMap<number, UsedMinute>> {
  const busiest = new Map<number, UsedMinute>();
  for (const minute of await readMinutes(pool, ids, BUSIEST_OF_MINUTES, latestMs)) {
    const before = busiest.get(minute.tenantId);
    if (before === undefined || attempts(minute.counts) > attempts(before.counts))
      busiest.set(minute.tenantId, minute);
  }
  return busiest;
}

/** What is known of a tenant's use. */
interface KnownUse {
  readonly use: TenantUse | undefined;
  readonly now: LastMinute | undefined;
  readonly busiest: UsedMinute | undefined;
  readonly minutes: readonly UsedMinute[];
  readonly refused: readonly RefusedNow[];
}

function usageMessage(tenant: TenantResource, { use, now, busiest, minutes, refused }: KnownUse) {
  if (use === undefined) throw new Error("a listed tenant has no use");
  const { quotas } = tenant;
  return create(TenantUsageSchema, {
    tenant: tenant.name,
    quotas: QUOTA_MESSAGES.write(quotas),
    ...(quotas.liveRecords !== undefined &&
      use.liveRecords !== undefined && { liveRecords: BigInt(use.liveRecords) }),
    ...(quotas.storedBytes !== undefined &&
      use.storedBytes !== undefined && { storedBytes: BigInt(use.storedBytes) }),
    declaredNamespaces: use.declaredNamespaces,
    unfinishedRecordJobs: use.unfinishedJobs,
    recentClaims: BigInt(use.recentClaims),
    recentSince: timestamp(use.recentSinceMs),
    recentRefused: BigInt(use.recentRefused),
    recentWouldBeRefused: BigInt(use.recentWouldBeRefused),
    state: Tenant_State[tenant.state],
    now: nowMessage("", now ?? UNUSED),
    ...(busiest && { busiestMinute: minuteMessage(busiest) }),
    minutes: minutes.map(minuteMessage),
    refused: [...refused],
  });
}
