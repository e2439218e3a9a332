import { useQuery } from "@connectrpc/connect-query";
import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { ListRecordsRequest_Order, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { commandLine } from "../../format/command.ts";
import { formatNoun } from "../../format/quantity.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { TextField } from "../../parts/field.tsx";
import { FilterBar, useFilters } from "../../parts/filter-bar.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { NamespaceField, useNamespace } from "../../parts/namespace-field.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { Quantity } from "../../parts/quantity.tsx";
import { recordHref } from "../../parts/record-path.ts";
import { ResolveButtons, useResolveDialog } from "../../parts/resolution/resolve-buttons.tsx";
import { Time } from "../../parts/time.tsx";
import { TimeField, timestampOf } from "../../parts/time-field.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { Screen } from "../../shell/screen.tsx";
import { useShortcut } from "../../shell/use-shortcut.ts";
import { BulkDialog } from "./bulk-dialog.tsx";

const PAGE_SIZE = 50;
const REFRESH_MS = 10_000;
const FILTERS = ["namespace", "owner", "before"] as const;
type Filters = Readonly<globalThis.Record<(typeof FILTERS)[number], string>>;

/** The queue of ambiguous records: the oldest first, to be decided one by one or together. */
export default function Ambiguous() {
  const typed = useFilters(FILTERS);
  const filters = { ...typed, namespace: useNamespace(typed.namespace) };
  const [isBulk, setBulk] = useState(false);
  useShortcut("b", "Resolve all matching records", () => setBulk(true));
  return (
    <Screen
      title="Ambiguous records"
      lead="Their lease ended, and it is unknown whether the effect happened. Check whether it did, then resolve them. The oldest come first."
      actions={
        <button type="button" onClick={() => setBulk(true)}>
          Resolve all matching…
        </button>
      }
    >
      <FilterBar>
        <NamespaceField value={filters.namespace} />
        <TextField label="Owner" name="owner" defaultValue={filters.owner} maxLength={128} />
        <TimeField label="Ambiguous since before" name="before" value={filters.before} />
      </FilterBar>
      <Queue filters={filters} />
      {isBulk && <BulkDialog filters={filters} close={() => setBulk(false)} />}
    </Screen>
  );
}

function Queue({ filters }: { readonly filters: Filters }) {
  const { token } = usePageToken();
  const leaseExpiredBefore = timestampOf(filters.before);
  const list = useQuery(
    TenantAdminService.method.listRecords,
    {
      state: Record_State.AMBIGUOUS,
      order: ListRecordsRequest_Order.LEASE_EXPIRY,
      pageSize: PAGE_SIZE,
      pageToken: token,
      namespace: filters.namespace,
      owner: filters.owner,
      ...(leaseExpiredBefore && { leaseExpiredBefore }),
    },
    { refetchInterval: useLiveInterval(REFRESH_MS), placeholderData: keepPreviousData },
  );
  const { ask, dialog } = useResolveDialog();
  if (list.data === undefined) {
    return list.error === null ? (
      <Loading rows={12} />
    ) : (
      <ErrorState error={list.error} retry={() => list.refetch()} />
    );
  }
  const { records, nextPageToken } = list.data;
  const command = commandOf(filters);
  return (
    <div aria-busy={list.isPlaceholderData}>
      {records.length === 0 && nextPageToken === "" ? (
        <Empty command={command}>{emptyText(filters, token)}</Empty>
      ) : (
        <DataTable
          caption={`${formatNoun(records.length, "record", "records")} on this page`}
          columns={columnsOf(ask)}
          rows={records}
          rowKey={({ namespace, key }) => `${namespace}/${key}`}
          href={({ namespace, key }) => recordHref(namespace, key)}
        />
      )}
      <Pager nextPageToken={nextPageToken} />
      {records.length > 0 && <CliHint command={command} />}
      {dialog}
    </div>
  );
}

function columnsOf(ask: ReturnType<typeof useResolveDialog>["ask"]): readonly Column<Record>[] {
  return [
    { heading: "Key", cell: ({ key }) => <UserText>{key}</UserText> },
    { heading: "Namespace", cell: ({ namespace }) => namespace },
    { heading: "Ambiguous since", cell: ({ leaseExpiresAt }) => <Time at={leaseExpiresAt} /> },
    {
      heading: "Last checkpoint",
      cell: ({ checkpoint }) => (checkpoint === undefined ? "none" : <UserText>{checkpoint.name}</UserText>),
    },
    { heading: "Owner", cell: ({ owner }) => (owner === "" ? "none" : <UserText>{owner}</UserText>) },
    { heading: "Attempt", kind: "number", cell: ({ attempt }) => <Quantity value={attempt} /> },
    {
      heading: "What happened?",
      cell: (record) => <ResolveButtons record={record} look="row" ask={ask} />,
    },
  ];
}

function emptyText({ namespace, owner, before }: Filters, token: string): string {
  if (token !== "") return "There are no more ambiguous records.";
  const isFiltered = [namespace, owner, before].some((filter) => filter !== "");
  return isFiltered
    ? "No ambiguous record matches these filters."
    : "No record is ambiguous. Nothing to decide.";
}

function commandOf({ namespace, owner, before }: Filters): string {
  const options = { state: "ambiguous", namespace, owner, "lease-expired-before": before };
  return `${commandLine("onceward records list", options)} --oldest-first`;
}
