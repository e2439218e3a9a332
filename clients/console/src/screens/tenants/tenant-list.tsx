import { useQuery } from "@connectrpc/connect-query";
import { OperatorService, type TenantUsage } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { keepPreviousData } from "@tanstack/react-query";
import { formatEstimate } from "../../format/quantity.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { Quantity } from "../../parts/quantity.tsx";
import { useNow } from "../../parts/time.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { QuotaBar } from "../tenant/quota-bar.tsx";
import { claimsPerSecond, type MeasuredQuota, quotaUse } from "../tenant/quota-use.ts";
import { TenantStateMark } from "../tenant/tenant-state.tsx";
import styles from "./tenants.module.css";
import { joinTokens, splitTokens } from "./two-tokens.ts";

const PAGE_SIZE = 50;
const REFRESH_MS = 30_000;
const COMMAND = "onceward operator usage";

/** The tenants by name: two lists of the API, which are of the same tenants and in the same order. */
export function TenantList() {
  const { token } = usePageToken();
  const [usageToken, stateToken] = splitTokens(token);
  const options = { refetchInterval: useLiveInterval(REFRESH_MS), placeholderData: keepPreviousData };
  const { listTenantUsage, listTenants } = OperatorService.method;
  const usage = useQuery(listTenantUsage, { pageSize: PAGE_SIZE, pageToken: usageToken }, options);
  const states = useQuery(listTenants, { pageSize: PAGE_SIZE, pageToken: stateToken }, options);
  const now = useNow();
  const failed = [usage, states].find(({ data, error }) => data === undefined && error !== null);
  if (failed !== undefined) return <ErrorState error={failed.error} retry={failed.refetch} />;
  if (usage.data === undefined || states.data === undefined) return <Loading rows={10} />;
  const { tenants, nextPageToken } = usage.data;
  if (tenants.length === 0) {
    return <Empty command="onceward operator tenants create acme">There is no tenant.</Empty>;
  }
  const stateOf = new Map(states.data.tenants.map(({ name, state }) => [name, state]));
  const columns: readonly Column<TenantUsage>[] = [
    { heading: "Tenant", cell: ({ tenant }) => tenant },
    {
      heading: "State",
      cell: ({ tenant }) => {
        const state = stateOf.get(tenant);
        return state === undefined ? "-" : <TenantStateMark state={state} />;
      },
    },
    { heading: "Claims a second", kind: "number", cell: (row) => <Rate usage={row} now={now} /> },
    use("Stored records", "liveRecords", now),
    use("Stored bytes", "storedBytes", now),
    use("Declared namespaces", "declaredNamespaces", now),
    {
      heading: "Unfinished jobs",
      kind: "number",
      cell: ({ unfinishedRecordJobs }) => <Quantity value={unfinishedRecordJobs} />,
    },
  ];
  return (
    <div aria-busy={usage.isPlaceholderData}>
      <DataTable
        caption="Use beside the quotas. Records and bytes are counted only while a quota of them is set; claims are on average of the last full hour and this one."
        columns={columns}
        rows={tenants}
        rowKey={({ tenant }) => tenant}
        href={({ tenant }) => `/tenants/${tenant}`}
      />
      <Pager nextPageToken={joinTokens(nextPageToken, states.data.nextPageToken)} />
      <CliHint command={COMMAND} />
    </div>
  );
}

function use(heading: string, quota: MeasuredQuota, now: Date): Column<TenantUsage> {
  return {
    heading,
    cell: (usage) => <QuotaBar quota={quota} use={quotaUse(quota, usage, usage.quotas ?? {}, now)} />,
  };
}

function Rate({ usage, now }: { readonly usage: TenantUsage; readonly now: Date }) {
  const rate = claimsPerSecond(usage, now);
  const limit = usage.quotas?.operationsPerSecond;
  return (
    <>
      {rate === undefined ? "-" : formatEstimate(rate)}
      {limit !== undefined && (
        <div className={styles.quiet}>
          limit <Quantity value={limit} />
        </div>
      )}
    </>
  );
}
