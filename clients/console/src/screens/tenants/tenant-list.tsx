import { useQuery } from "@connectrpc/connect-query";
import {
  ListTenantUsageRequest_Order,
  OperatorService,
  type TenantUsage,
} from "@onceward/gen/onceward/v1/operator_pb.ts";
import { keepPreviousData } from "@tanstack/react-query";
import { commandLine } from "../../format/command.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { FilterBar, useFilters } from "../../parts/filter-bar.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { Quantity } from "../../parts/quantity.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { type MeasuredQuota, quotaUse } from "../tenant/quota-use.ts";
import { NowRate, QuotaBar, Refused, TenantStateMark } from "../tenant/tenant-cells.tsx";

const PAGE_SIZE = 50;
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
export function TenantList() {
  const { token } = usePageToken();
  const { sort, search } = useFilters(["sort", "search"]);
  const key = sort in ORDERS ? (sort as keyof typeof ORDERS) : "rate";
  const usage = useQuery(
    OperatorService.method.listTenantUsage,
    { pageSize: PAGE_SIZE, pageToken: token, order: ORDERS[key].order, search },
    { refetchInterval: useLiveInterval(REFRESH_MS), placeholderData: keepPreviousData },
  );
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
      {usage.data === undefined ? (
        <Unanswered query={usage} rows={10} />
      ) : (
        <div aria-busy={usage.isPlaceholderData}>
          <Rows tenants={usage.data.tenants} search={search} />
          <Pager nextPageToken={usage.data.nextPageToken} />
          <CliHint command={commandLine("onceward operator usage", { sort: key, search })} />
        </div>
      )}
    </>
  );
}

const COLUMNS: readonly Column<TenantUsage>[] = [
  { heading: "Tenant", cell: ({ tenant }) => tenant },
  { heading: "Claims now", kind: "number", cell: (usage) => <NowRate usage={usage} /> },
  { heading: "Refused by a quota", cell: (usage) => <Refused usage={usage} /> },
  { heading: "Claims", kind: "number", cell: ({ recentClaims }) => <Quantity value={recentClaims} /> },
  use("Stored records", "liveRecords"),
  use("Stored bytes", "storedBytes"),
  { heading: "State", cell: ({ state }) => <TenantStateMark state={state} /> },
];

function Rows({ tenants, search }: { readonly tenants: readonly TenantUsage[]; readonly search: string }) {
  if (tenants.length === 0) {
    return search === "" ? (
      <Empty command="onceward operator tenants create acme">There is no tenant.</Empty>
    ) : (
      <Empty command="onceward operator usage">No tenant's name contains {search}.</Empty>
    );
  }
  return (
    <DataTable
      caption="Claims now are those of the last minute; the other counts are of the last full hour and this one. Records and bytes are counted while a quota of them is set."
      columns={COLUMNS}
      rows={tenants}
      rowKey={({ tenant }) => tenant}
      href={({ tenant }) => `/tenants/${tenant}`}
    />
  );
}

function use(heading: string, quota: MeasuredQuota): Column<TenantUsage> {
  return {
    heading,
    cell: (usage) => <QuotaBar quota={quota} use={quotaUse(quota, usage, usage.quotas ?? {})} />,
  };
}
