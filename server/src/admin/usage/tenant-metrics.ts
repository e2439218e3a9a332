import { create } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import type { CoreParts } from "../../core-parts.ts";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { QUOTA_FIELDS } from "../../domain/quotas.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { TenantAdminService } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { pathOf, type Route } from "../../transport/route.ts";
import { tenantAdmin } from "../own-tenant.ts";
import { USAGE_COUNTERS, type UsageCounter } from "./usage.ts";

/** Namespaces with series of their own: those used first, so that hardly one becomes `other` later in the day. */
const MAX_NAMESPACES = 100;
const METHOD = { ...TenantAdminService.method.getUsage, output: StringValueSchema };

/** Returns the call whose reply is a tenant's own metrics, as a text of OpenMetrics. It is admitted, counted and audited as GetUsage. */
export function tenantMetricsRoute({ admission, administrationPool, databaseClock }: CoreParts): Route {
  return {
    method: METHOD,
    path: pathOf(METHOD),
    role: "TENANT_ADMIN",
    async handle(_request, call) {
      admission.admitOperation(call.principal);
      const { tenant, namespaces } = tenantAdmin(call);
      const runner = administrationPool.of(call);
      const rows = await sumUsageOfDay(runner, tenant.id, namespaces, databaseClock.latestMs());
      const quotas = namespaces === undefined ? quotaMetrics(tenant) : [];
      const lines = [...USAGE_COUNTERS.flatMap((name) => counterMetric(name, rows)), ...quotas, "# EOF", ""];
      return create(StringValueSchema, { value: lines.join("\n") });
    },
  };
}

type DayRow = Readonly<Record<UsageCounter, string>> & { readonly namespace: string };

/**
 * Since midnight, UTC, and not for as long as hours are kept: a sum over a moving window would fall without having begun again,
 * which Prometheus takes for a large increase.
 */
const sumDayRows = {
  name: "sum_usage_of_day",
  text: `
with own as (
  select case when row_number() over (order by min(u.hour), u.namespace) > ${MAX_NAMESPACES}
              then 'other' else u.namespace end as name,
         ${USAGE_COUNTERS.map((name) => `sum(u.${name}) as ${name}`).join(", ")}
    from usage_hours u
   where u.tenant_id = $1::int
     and u.hour >= date_trunc('day', ${nowBy("$3")} at time zone 'utc') at time zone 'utc'
     and ($2::text[] is null or u.namespace = any($2::text[]))
   group by u.namespace
)
select name as namespace, ${USAGE_COUNTERS.map((name) => `sum(${name})::text as ${name}`).join(", ")}
  from own
 group by name
 order by name`,
};

/**
 * Sums a tenant's day by namespace; undefined: all namespaces.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumUsageOfDay(
  runner: Runner,
  tenantId: number,
  namespaces: ReadonlySet<string> | undefined,
  latestMs?: number,
): Promise<readonly DayRow[]> {
  return await runner.run<DayRow>(sumDayRows, [tenantId, namespaces && [...namespaces], latestMs ?? null]);
}

function counterMetric(name: UsageCounter, rows: readonly DayRow[]): readonly string[] {
  const family = `onceward_usage_${name}`;
  const samples = rows.map(
    (row) => `${family}_total{namespace=${JSON.stringify(row.namespace)}} ${row[name]}`,
  );
  return [`# TYPE ${family} counter`, `# HELP ${family} UsageHour.${name} since 00:00 UTC.`, ...samples];
}

/** Returns gauges of the quotas that are set, and of what is counted for them. */
function quotaMetrics({ quotas, totals }: Tenant): readonly string[] {
  const limits = QUOTA_FIELDS.filter(({ column }) => column.startsWith("quota_"));
  const gauges = [
    ...limits.map(({ name, column }) => [`onceward_${column}`, quotas[name]] as const),
    ["onceward_live_records", quotas.liveRecords && totals.records] as const,
    ["onceward_stored_bytes", quotas.storedBytes && totals.storedBytes] as const,
  ];
  return gauges.flatMap(([name, value]) =>
    typeof value === "number" ? [`# TYPE ${name} gauge`, `${name} ${value}`] : [],
  );
}
