import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import {
  findTenantResource,
  findTenantResources,
  listTenantNames,
  listTenantResources,
} from "../../database/tenants/tenants.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import {
  ListTenantUsageRequest_Order,
  ListTenantUsageResponseSchema,
  TenantUsageSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { type RefusedNow, Tenant_State } from "../../gen/onceward/v1/tenant_pb.ts";
import { QUOTA_MESSAGES } from "../namespaces/policy-messages.ts";
import { pageSize, replyPage } from "../pages.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import {
  callsPerSecond,
  MINUTES_SHOWN,
  minuteMessage,
  nowMessage,
  refusedMessages,
} from "./get-usage-now.ts";
import { attempts } from "./recent-use.ts";
import {
  type LastMinute,
  readLastMinute,
  readLastMinutes,
  readMinutes,
  UNUSED,
  type UsedMinute,
} from "./stored-recent-use.ts";
import { findTenantUse, sumRecentUse, type TenantUse } from "./tenant-use.ts";

/** Each tenant takes some index ranges; a page of so many takes some tens of milliseconds. */
const MAX_TENANTS = 200;
/** A tenant's longest name. */
const MAX_SEARCH_BYTES = 63;
/** How long a short rush is remembered, which a new limit would refuse. */
const BUSIEST_OF_MINUTES = 15;

/** By what tenants are listed; those that are equal follow by name. */
type TenantOrder = "name" | "rate" | "refused" | "usage";

const ORDERS: Readonly<Record<number, TenantOrder>> = {
  [ListTenantUsageRequest_Order.UNSPECIFIED]: "name",
  [ListTenantUsageRequest_Order.RATE]: "rate",
  [ListTenantUsageRequest_Order.REFUSED]: "refused",
  [ListTenantUsageRequest_Order.USAGE]: "usage",
};

/** Returns the RPC that shows tenants' use beside their quotas. */
export function createTenantUsageHandlers({
  pool,
  pageTokens,
  databaseClock,
}: AdministrationParts): OperatorRpcs<"listTenantUsage"> {
  return {
    async listTenantUsage(request) {
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
    },
  };
}

/** A tenant's place in an order. */
interface Place {
  readonly name: string;
  readonly value: number;
}

/** Which tenants are wanted. */
interface RankQuery {
  /** Is in their names. */
  readonly search: string;
  readonly order: TenantOrder;
  /** The last tenant of the page before, with its value then. */
  readonly after: Place | undefined;
  readonly count: number;
  /** By tenants' ids. */
  readonly lastMinutes: ReadonlyMap<number, LastMinute>;
  /** As DatabaseClock. */
  readonly latestMs: number | undefined;
}

const NAMES_AT_ONCE = 10_000;
/** The tenants of an installation that are ordered or searched, the first by name: some 10 MiB for the time of a call. */
const MAX_RANKED = 100_000;

/**
 * Returns `count` tenants in their order, and by what a tenant was ordered; 0 if it was by name. All tenants' names are read,
 * unless they are only listed by name: 10,000 in some 10 ms.
 */
async function rankTenants(
  pool: Runner,
  query: RankQuery,
): Promise<{ readonly found: readonly TenantResource[]; readonly rankOf: (tenantId: number) => number }> {
  const { search, order, after, count } = query;
  if (order === "name" && search === "")
    return { found: await listTenantResources(pool, after?.name ?? "", count), rankOf: () => 0 };
  const rankOf = await readValues(pool, query);
  const all = (await readNames(pool)).filter(({ name }) => name.includes(search));
  const rest = all.filter(
    ({ id, name }) => after === undefined || isBehind(after, { name, value: rankOf(id) }),
  );
  const ids = rest
    // By name already, and the sort is stable.
    .sort((a, b) => rankOf(b.id) - rankOf(a.id))
    .slice(0, count)
    .map(({ id }) => id);
  return { found: await findTenantResources(pool, ids), rankOf };
}

function isBehind(after: Place, { name, value }: Place): boolean {
  return value < after.value || (value === after.value && name > after.name);
}

async function readValues(
  pool: Runner,
  { order, lastMinutes, latestMs }: RankQuery,
): Promise<(id: number) => number> {
  switch (order) {
    case "name":
      return () => 0;
    case "rate":
      return (id) => callsPerSecond(lastMinutes.get(id) ?? UNUSED);
    case "refused":
    case "usage": {
      const counter = order === "usage" ? "claims" : "refused";
      const sums = new Map((await sumRecentUse(pool, latestMs)).map((sum) => [sum.tenantId, sum[counter]]));
      return (id) => sums.get(id) ?? 0;
    }
    default:
      return order satisfies never;
  }
}

async function readNames(pool: Runner): Promise<readonly Pick<TenantResource, "id" | "name">[]> {
  const names: Pick<TenantResource, "id" | "name">[] = [];
  for (;;) {
    const found = await listTenantNames(pool, names.at(-1)?.name ?? "", NAMES_AT_ONCE);
    names.push(...found);
    if (found.length < NAMES_AT_ONCE || names.length >= MAX_RANKED) return names;
  }
}

/** Returns the tenant with a name, if there is one. */
async function findNamed(pool: Runner, name: string): ReturnType<typeof rankTenants> {
  const tenant = await findTenantResource(pool, name);
  return { found: tenant === undefined ? [] : [tenant], rankOf: () => 0 };
}

/** Returns what was refused to tenants in the last minute. */
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

/** Returns the busiest of the last minutes of tenants, by their ids. */
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
