import { MAX_CHECKPOINT_NAME_BYTES, MAX_OWNER_BYTES } from "@onceward/gen/limits.ts";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { reconciliationFile } from "@onceward/words/answers";
import { recordHref } from "@onceward/words/record-address";
import { useState } from "react";
import { useSearch } from "wouter";
import { commandLine } from "../../format/command.ts";
import { formatNoun } from "../../format/quantity.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { type Column, type Columns, DataTable } from "../../parts/data-table.tsx";
import { download } from "../../parts/download.ts";
import { TextField } from "../../parts/field.tsx";
import { FilterBar, NamespaceField, TimeField, useFilters, useNamespace } from "../../parts/filter-bar.tsx";
import { Pager, usePage } from "../../parts/list.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { LookupLink } from "../../parts/lookup-link.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { usePageToken } from "../../parts/pages.ts";
import type { ResolutionKind } from "../../parts/resolution/resolution.ts";
import { ResolveButtons, useResolution } from "../../parts/resolution/resolve-dialog.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { readFailure } from "../../session/failure.ts";
import { Screen } from "../../shell/screen.tsx";
import { useShortcut } from "../../shell/use-shortcut.ts";
import styles from "../../styles/screens.module.css";
import { AnswersDialog } from "./answers-dialog.tsx";
import { FILTERS, type Filters, linksOf, requestOf, useReadAll } from "./filters.ts";
import { MatchingDialog } from "./matching-dialog.tsx";

const PAGE_SIZE = 100;
const REFRESH_MS = 10_000;
const KINDS = ["complete", "release", "forget"] as const;

/** The queue of ambiguous records, the oldest first: rows are chosen, and decided about together or by a file of answers. */
export default function Ambiguous() {
  const typed = useFilters(FILTERS);
  const filters = { ...typed, namespace: useNamespace(typed.namespace) };
  const [isImporting, setImporting] = useState(false);
  const readAll = useReadAll(filters);
  const notify = useNotice();
  async function save(): Promise<void> {
    try {
      const { records, links, isCut } = await readAll();
      const file = new Blob([reconciliationFile(records, links)], { type: "text/csv;charset=utf-8" });
      download("onceward-ambiguous.csv", file);
      const keys = formatNoun(records.length, "key", "keys");
      notify(
        `Saved ${isCut ? "the oldest " : ""}${keys}. Answer yes or no in "happened?", then import the file.`,
      );
    } catch (error) {
      notify(`Nothing was saved: ${readFailure(error).message}`, "failure");
    }
  }
  return (
    <Screen
      title="Ambiguous records"
      lead="Their lease ended, and it is unknown whether the effect happened. Find out whether it happened, then record the answer. The oldest come first."
      actions={
        <>
          <button type="button" onClick={() => void save()}>
            Export keys
          </button>
          <button type="button" onClick={() => setImporting(true)}>
            Import answers…
          </button>
        </>
      }
    >
      <FilterBar foldsNarrow>
        <NamespaceField value={filters.namespace} />
        <TextField label="Owner" name="owner" defaultValue={filters.owner} maxLength={MAX_OWNER_BYTES} />
        <TextField
          label="Last checkpoint"
          name="checkpoint"
          defaultValue={filters.checkpoint}
          maxLength={MAX_CHECKPOINT_NAME_BYTES}
        />
        <TimeField label="Ambiguous before" name="before" value={filters.before} />
      </FilterBar>
      <Queue key={useSearch()} filters={filters} />
      {isImporting && <AnswersDialog readAll={readAll} close={() => setImporting(false)} />}
    </Screen>
  );
}

function Queue({ filters }: { readonly filters: Filters }) {
  const { token } = usePageToken();
  const { listRecords } = TenantAdminService.method;
  const list = usePage(listRecords, { ...requestOf(filters), pageSize: PAGE_SIZE }, REFRESH_MS);
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  if (list.data === undefined) return <Unanswered query={list} rows={12} />;
  const { records, nextPageToken } = list.data;
  const command = commandOf(filters);
  const isEmpty = records.length === 0 && nextPageToken === "";
  return (
    <div aria-busy={list.isPlaceholderData}>
      <Decision
        records={records.filter((record) => chosen.has(keyOf(record)))}
        filters={filters}
        isOffered={!isEmpty}
        isMore={nextPageToken !== ""}
        clear={() => choose(new Set())}
      />
      {isEmpty ? (
        <Empty command={command}>{emptyText(filters, token)}</Empty>
      ) : (
        <DataTable
          caption={`${formatNoun(records.length, "record", "records")}${nextPageToken === "" && token === "" ? "" : " on this page"}`}
          columns={columnsOf(linksOf(list.data))}
          rows={records}
          rowKey={keyOf}
          href={({ namespace, key }) => recordHref(namespace, key)}
          selection={{ chosen, choose, nameOf: ({ key }) => key }}
        />
      )}
      <Pager nextPageToken={nextPageToken} />
      {!isEmpty && <CliHint command={command} />}
    </div>
  );
}

function keyOf({ namespace, key }: Record): string {
  return `${namespace}/${key}`;
}

interface DecisionProps {
  /** The chosen ones. */
  readonly records: readonly Record[];
  readonly filters: Filters;
  /** False while no record is listed: then only a dialog that is open stays. */
  readonly isOffered: boolean;
  readonly isMore: boolean;
  readonly clear: () => void;
}

/** What is decided about the chosen records, or about all that match. A dialog stays open if the last record leaves the list. */
function Decision({ records, filters, isOffered, isMore, clear }: DecisionProps) {
  const { buttons, dialog } = useResolution(records, clear);
  const [isAll, setAll] = useState(false);
  const [kind, setKind] = useState<ResolutionKind>();
  useShortcut("b", "Decide about all matching records", () => setAll(true));
  const chosen = formatNoun(records.length, "record", "records");
  return (
    <>
      {isOffered && (
        <section className={styles.decision} aria-label="Decision">
          <span role="status">
            {isAll
              ? "All that match"
              : records.length === 0
                ? "Select records to decide about them"
                : `${chosen} selected`}
          </span>
          {isAll ? <ResolveButtons kinds={KINDS} ask={setKind} /> : buttons}
          {isAll ? (
            <button type="button" data-look="link" onClick={() => setAll(false)}>
              Only selected ones
            </button>
          ) : (
            <button type="button" data-look="link" onClick={() => setAll(true)}>
              {isMore ? "All that match, also on other pages" : "All that match"}
            </button>
          )}
        </section>
      )}
      {dialog}
      {kind !== undefined && (
        <MatchingDialog filters={filters} kind={kind} close={() => setKind(undefined)} />
      )}
    </>
  );
}

function columnsOf(links: ReadonlyMap<string, string>): Columns<Record> {
  const atProvider: Column<Record> = [
    "At the provider",
    (record) => <LookupLink template={links.get(record.namespace)} record={record} />,
  ];
  return [
    ["Key", ({ key }) => <UserText>{key}</UserText>],
    ["Namespace", ({ namespace }) => namespace],
    ["Ambiguous since", ({ leaseExpiresAt }) => <Time at={leaseExpiresAt} />],
    [
      "Last checkpoint",
      ({ checkpoint }) => (checkpoint === undefined ? "none" : <UserText>{checkpoint.name}</UserText>),
    ],
    ["Owner", ({ owner }) => (owner === "" ? "none" : <UserText>{owner}</UserText>)],
    ...(links.size === 0 ? [] : [atProvider]),
  ];
}

function emptyText(filters: Filters, token: string): string {
  if (token !== "") return "There are no more ambiguous records.";
  return FILTERS.some((name) => filters[name] !== "")
    ? "No ambiguous record matches these filters."
    : "No record is ambiguous. Nothing to decide.";
}

function commandOf({ namespace, owner, before }: Filters): string {
  const options = { state: "ambiguous", namespace, owner, "lease-expired-before": before };
  return `${commandLine("onceward records list", options)} --oldest-first`;
}
