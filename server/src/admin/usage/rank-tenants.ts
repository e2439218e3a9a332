import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import {
  findTenantResource,
  findTenantResources,
  listTenantResources,
} from "../../database/tenants/tenants.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { callsPerSecond, type LastMinute, UNUSED } from "./last-minute.ts";
import { REFUSED_SUM } from "./usage.ts";

/** By what tenants are listed; those that are equal follow by name. */
export type TenantOrder = "name" | "rate" | "refused" | "usage";

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
export async function rankTenants(
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
export async function findNamed(pool: Runner, name: string): ReturnType<typeof rankTenants> {
  const tenant = await findTenantResource(pool, name);
  return { found: tenant === undefined ? [] : [tenant], rankOf: () => 0 };
}

const listTenantNameRows = {
  name: "list_tenant_names",
  text: "select id, name from tenants where name > $1::text order by name limit $2::int",
};

/** Returns at most `limit` tenants' ids and names, by name, whose names come after `afterName`. */
export async function listTenantNames(
  runner: Runner,
  afterName: string,
  limit: number,
): Promise<readonly Pick<TenantResource, "id" | "name">[]> {
  return await runner.run<Pick<TenantResource, "id" | "name">>(listTenantNameRows, [afterName, limit]);
}

/** Reads the hours of all tenants, of which a tenant has two for each namespace, by their index. */
const sumRecentHours = {
  name: "sum_recent_use",
  text: `
select u.tenant_id as "tenantId", sum(u.claims)::numeric as claims, sum(${REFUSED_SUM})::numeric as refused
  from usage_hours u
 where u.hour at time zone 'utc'
       >= date_trunc('hour', ${nowBy("$1")} at time zone 'utc') - interval '1 hour'
 group by u.tenant_id`,
};

/**
 * Returns the sums of all tenants that were used in the last full hour or the current one.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumRecentUse(runner: Runner, latestMs?: number) {
  return runner.run<Readonly<Record<"tenantId" | "claims" | "refused", number>>>(sumRecentHours, [
    latestMs ?? null,
  ]);
}
