import {
  ListTenantUsageRequest_Order,
  OperatorService,
  type TenantUsage,
} from "@onceward/gen/onceward/v1/operator_pb.ts";
import { type MeasuredQuota, quotaName, quotaUse } from "@onceward/words/quota-use";
import { commandLine } from "../../format/command.ts";
import { asTitle, formatCount } from "../../format/quantity.ts";
import { SecretScreen } from "../../parts/api-key/secret-screen.tsx";
import { type Column, type Columns, DataTable } from "../../parts/data-table.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { FilterBar, useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { NowRate, QuotaBar, Refused, TenantStateMark } from "../tenant/tenant-cells.tsx";
import { CreateTenant } from "./create-tenant.tsx";

/** The screen "Tenants": the tenants with their use. */
export default function Tenants() {
  return (
    <SecretScreen
      title="Tenants"
      lead="Who uses the service, and how much of what is allowed."
      action="Create a tenant"
      form={CreateTenant}
    >
      {() => <TenantList />}
    </SecretScreen>
  );
}

/** As the counts of a tenant. */
const REFRESH_MS = 8_000;

/** The values of the address, and what they are called. */
const ORDERS = {
  rate: { order: ListTenantUsageRequest_Order.RATE, label: "Busiest now" },
  refused: { order: ListTenantUsageRequest_Order.REFUSED, label: "Most refused" },
  usage: { order: ListTenantUsageRequest_Order.USAGE, label: "Most claims" },
  name: { order: ListTenantUsageRequest_Order.UNSPECIFIED, label: "Name" },
} as const;

/** The tenants with their use, the busiest first. */
function TenantList() {
  const { sort, search } = useFilters(["sort", "search"]);
  const key = sort in ORDERS ? (sort as keyof typeof ORDERS) : "rate";
  const request = { order: ORDERS[key].order, search };
  const page = usePage(OperatorService.method.listTenantUsage, request, REFRESH_MS);
  return (
    <>
      <FilterBar>
        <TextField label="Name contains" name="search" defaultValue={search} maxLength={63} />
        <SelectField
          label="Order"
          name="sort"
          defaultValue={key}
          options={Object.fromEntries(Object.entries(ORDERS).map(([value, { label }]) => [value, label]))}
        />
      </FilterBar>
      <List
        page={page}
        rows={10}
        isEmpty={({ tenants }) => tenants.length === 0}
        empty={
          search === "" ? (
            <Empty command="onceward operator tenants create acme">There is no tenant.</Empty>
          ) : (
            <Empty command="onceward operator usage">No tenant's name contains {search}.</Empty>
          )
        }
        command={commandLine("onceward operator usage", { sort: key, search })}
      >
        {({ tenants }) => (
          <DataTable
            caption="Claims now are those of the last minute; the other counts are of the last full hour and this one. Records and bytes are counted while a quota of them is set."
            columns={COLUMNS}
            rows={tenants}
            rowKey={({ tenant }) => tenant}
            href={({ tenant }) => `/tenants/${tenant}`}
          />
        )}
      </List>
    </>
  );
}

const COLUMNS: Columns<TenantUsage> = [
  ["Tenant", ({ tenant }) => tenant],
  ["Claims now", (usage) => <NowRate usage={usage} />, "number"],
  ["Refused", (usage) => <Refused usage={usage} />, "number"],
  ["Claims", ({ recentClaims }) => formatCount(recentClaims), "number"],
  use("liveRecords"),
  use("storedBytes"),
  ["State", ({ state }) => <TenantStateMark state={state} />],
];

function use(quota: MeasuredQuota): Column<TenantUsage> {
  return [
    asTitle(quotaName(quota)),
    (usage) => <QuotaBar quota={quota} use={quotaUse(quota, usage, usage.quotas ?? {})} />,
    "number",
  ];
}
