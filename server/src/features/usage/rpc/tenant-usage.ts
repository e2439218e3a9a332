import { create } from "@bufbuild/protobuf";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { timestamp, Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { findTenantResource } from "../../../core/store/tenants/tenants.ts";
import {
  type ListTenantUsageRequest,
  ListTenantUsageRequest_Order,
  ListTenantUsageResponseSchema,
  TenantUsageSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { Tenant_State } from "../../../gen/onceward/v1/tenant_pb.ts";
import { pageSize, replyPage } from "../../administration/pages.ts";
import { QUOTA_MESSAGES } from "../../administration/policy-messages.ts";
import type { AdministrationParts, OperatorRpcs } from "../../administration/services.ts";
import { attempts } from "../recent-use.ts";
import {
  type LastMinute,
  readLastMinutes,
  readMinutes,
  UNUSED,
  type UsedMinute,
} from "../store/recent-use.ts";
import { findTenantUse, type TenantUse } from "../store/tenant-use.ts";
import { type RankedTenants, rankTenants, type TenantOrder } from "../tenant-ranks.ts";
import { MINUTES_SHOWN, minuteMessage, nowMessage } from "./usage-now.ts";

/** Each tenant takes some index ranges; a page of so many takes some tens of milliseconds. */
const MAX_TENANTS = 200;
/** A tenant's longest name. */
const MAX_SEARCH_BYTES = 63;
/** How long a short rush is remembered, which a new limit would refuse. */
const BUSIEST_OF_MINUTES = 15;

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
      const order = parseOrder(request, violations);
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
      const [use, busiest, minutes] = await Promise.all([
        findTenantUse(pool, ids, latestMs),
        findBusiestMinutes(pool, ids, latestMs),
        name === "" ? [] : readMinutes(pool, ids, MINUTES_SHOWN, latestMs),
      ]);
      const { messages, last } = replyPage(found, size, TenantUsageSchema, (tenant) =>
        usageMessage(tenant, {
          use: use.get(tenant.id),
          now: lastMinutes.get(tenant.id),
          busiest: busiest.get(tenant.id),
          minutes,
        }),
      );
      return create(ListTenantUsageResponseSchema, {
        tenants: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [last.name, String(rankOf(last.id))]) }),
      });
    },
  };
}

/** Parses by what tenants are ordered. Adds a violation for an unknown order. */
function parseOrder({ order }: ListTenantUsageRequest, violations: Violations): TenantOrder {
  switch (order) {
    case ListTenantUsageRequest_Order.UNSPECIFIED:
      return "name";
    case ListTenantUsageRequest_Order.RATE:
      return "rate";
    case ListTenantUsageRequest_Order.REFUSED:
      return "refused";
    case ListTenantUsageRequest_Order.USAGE:
      return "usage";
    default:
      violations.add("order", "must be an order of tenants");
      return "name";
  }
}

/** Returns the tenant with a name, if there is one. */
async function findNamed(pool: Runner, name: string): Promise<RankedTenants> {
  const tenant = await findTenantResource(pool, name);
  return { found: tenant === undefined ? [] : [tenant], rankOf: () => 0 };
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
}

function usageMessage(tenant: TenantResource, { use, now, busiest, minutes }: KnownUse) {
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
  });
}
