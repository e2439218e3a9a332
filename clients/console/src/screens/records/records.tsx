import { MAX_KEY_BYTES, MAX_OWNER_BYTES } from "@onceward/gen/limits.ts";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { recordHref } from "@onceward/words/record-address";
import { formatCount, formatNoun } from "../../format/quantity.ts";
import { type Columns, DataTable } from "../../parts/data-table.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { FilterBar, NamespaceField, TimeField, useFilters, useNamespace } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { RecordStateMark } from "../../parts/record-state.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import {
  commandOf,
  FILTERS,
  type Filters,
  fingerprintProblem,
  jobProblem,
  requestOf,
  STATES,
} from "./filters.ts";
import { SearchResults } from "./search-results.tsx";

const PAGE_SIZE = 50;

const COLUMNS: Columns<Record> = [
  ["Key", ({ key }) => <UserText>{key}</UserText>],
  ["Namespace", ({ namespace }) => namespace],
  ["State", (record) => <RecordStateMark record={record} />],
  ["Attempt", ({ attempt }) => formatCount(attempt), "number"],
  ["Owner", ({ owner }) => (owner === "" ? "none" : <UserText>{owner}</UserText>)],
  ["Claimed", ({ claimedAt }) => <Time at={claimedAt} />],
  ["Key kept until", ({ expiresAt }) => <Time at={expiresAt} />],
];

/** The records of keys: opened by key, listed by filters. */
export default function Records() {
  const { q: search, ...typed } = useFilters([...FILTERS, "q"]);
  const filters = { ...typed, namespace: useNamespace(typed.namespace) };
  return (
    <Screen title="Records" lead="What Onceward remembers of each key.">
      {search !== "" && <SearchResults key={search} text={search} />}
      <FilterBar more={<MoreFilters filters={filters} />}>
        <NamespaceField value={filters.namespace} />
        <SelectField
          label="State"
          name="state"
          defaultValue={filters.state}
          options={Object.fromEntries([
            ["", "any"],
            ...[...STATES].map(([value, { label }]) => [value, label]),
          ])}
        />
        <TextField
          label="Key begins with"
          name="prefix"
          defaultValue={filters.prefix}
          maxLength={MAX_KEY_BYTES}
        />
      </FilterBar>
      {search === "" && <RecordList filters={filters} />}
    </Screen>
  );
}

function MoreFilters({ filters }: { readonly filters: Filters }) {
  return (
    <>
      <TextField label="Owner" name="owner" defaultValue={filters.owner} maxLength={MAX_OWNER_BYTES} />
      <TextField
        label="Fingerprint"
        name="fingerprint"
        placeholder="64 hexadecimal digits"
        problem={fingerprintProblem(filters.fingerprint)}
        defaultValue={filters.fingerprint}
        maxLength={64}
      />
      <TextField
        label="Resolved by job"
        name="job"
        problem={jobProblem(filters.job)}
        defaultValue={filters.job}
        maxLength={18}
      />
      <TimeField label="Claimed after" name="after" value={filters.after} />
      <TimeField label="Claimed before" name="before" value={filters.before} />
    </>
  );
}

function RecordList({ filters }: { readonly filters: Filters }) {
  const { token } = usePageToken();
  const list = usePage(TenantAdminService.method.listRecords, { ...requestOf(filters), pageSize: PAGE_SIZE });
  const isFiltered = token !== "" || FILTERS.some((name) => filters[name] !== "");
  return (
    <List
      page={list}
      rows={12}
      isEmpty={({ records }) => records.length === 0}
      empty={
        isFiltered
          ? `No ${token === "" ? "record matches" : "more records match"}.`
          : "No key has been claimed, or all records have ended."
      }
      command={commandOf(filters)}
    >
      {({ records, nextPageToken }) => (
        <>
          <DataTable
            caption={`${formatNoun(records.length, "record", "records")}${token === "" && nextPageToken === "" ? "" : " on this page"}, by ${filters.namespace === "" ? "namespace and " : ""}key`}
            columns={COLUMNS}
            rows={records}
            rowKey={({ namespace, key }) => `${namespace}/${key}`}
            href={({ namespace, key }) => recordHref(namespace, key)}
          />
          {records.length < PAGE_SIZE && nextPageToken !== "" && (
            <p className={common.quiet}>
              A part of the records was examined in a second, and the next page continues. A key, or the
              beginning of one, is found at once; by owner, fingerprint, state or time, each record is
              examined.
            </p>
          )}
        </>
      )}
    </List>
  );
}
