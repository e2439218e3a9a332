import { MAX_CHECKPOINT_NAME_BYTES, MAX_OWNER_BYTES } from "@onceward/gen/limits.ts";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { reconciliationFile } from "@onceward/words/answers";
import { payloadLine } from "@onceward/words/payload";
import { recordHref } from "@onceward/words/record-address";
import { endsSoon } from "@onceward/words/record-lease";
import { useState } from "react";
import { Link, useSearch } from "wouter";
import { commandLine } from "../../format/command.ts";
import { formatCount, formatNoun } from "../../format/quantity.ts";
import { DialogButton } from "../../parts/confirm-dialog.tsx";
import { CliHint } from "../../parts/copy-button.tsx";
import { type Column, type Columns, DataTable, type RowGroup } from "../../parts/data-table.tsx";
import { download } from "../../parts/download.ts";
import { TextField } from "../../parts/field.tsx";
import { FilterBar, NamespaceField, TimeField } from "../../parts/filter-bar.tsx";
import { Pager } from "../../parts/list.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { LookupLink } from "../../parts/lookup-link.tsx";
import { NamespaceLinks } from "../../parts/namespace-links.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { hereWith, usePageToken, useQueryText, withParameters } from "../../parts/pages.ts";
import { RESOLUTIONS, type ResolutionKind } from "../../parts/resolution/resolution.ts";
import { ResolveButtons, useResolution } from "../../parts/resolution/resolve-dialog.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useAmbiguousCount } from "../../parts/work-counts.ts";
import { readFailure } from "../../session/failure.ts";
import { Screen } from "../../shell/screen.tsx";
import { useShortcut } from "../../shell/use-shortcut.ts";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { AnswersDialog } from "./answers-dialog.tsx";
import { FILTERS, type Filters, LINK_FIELD, linksOf, useReadAll, whichOf } from "./filters.ts";
import { MatchingDialog } from "./matching-dialog.tsx";
import { groupsOf, useQueue, useQueueFilters } from "./queue.ts";
import { Settled } from "./settled.tsx";

const KINDS = ["complete", "release", "forget"] as const;

/** The queue of ambiguous records, by owner: rows are chosen, and decided about together or by a file of answers. */
export default function Ambiguous() {
  const filters = useQueueFilters();
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
      lead="Their lease ended, and it is unknown whether the effect happened. Find out whether it happened, then record the answer. By owner, the oldest first in each."
      actions={
        <>
          <button type="button" onClick={() => void save()}>
            Export keys
          </button>
          <DialogButton
            action="Import answers…"
            dialog={(close) => <AnswersDialog readAll={readAll} close={close} />}
          />
        </>
      }
    >
      <FilterBar>
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
      <Settled />
      <Queue key={useSearch()} filters={filters} />
    </Screen>
  );
}

function Queue({ filters }: { readonly filters: Filters }) {
  const { token } = usePageToken();
  const search = useQueryText();
  const list = useQueue(filters);
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  if (list.data === undefined) return <Unanswered query={list} rows={12} />;
  const { records, nextPageToken } = list.data;
  const where = nextPageToken === "" && token === "" ? "" : " on this page";
  const counted = (rows: readonly Record[]) => `${formatNoun(rows.length, "record", "records")}${where}`;
  const groups = groupsOf(records).map(({ owner, rows }): RowGroup<Record> => {
    const [first] = rows;
    const left = counted(rows);
    return {
      name: `${owner || "no owner"}, ${left}, ${keyOf(first)}`,
      heading: <GroupHeading owner={owner} left={left} first={first} search={search} />,
      rows,
    };
  });
  const links = linksOf(list.data);
  const unlinked = [...new Set(records.map(({ namespace }) => namespace))].filter((name) => !links.has(name));
  const [first] = records
    .map((each) => each.expiresAt)
    .toSorted((a, b) => Number((a?.seconds ?? 0n) - (b?.seconds ?? 0n)));
  const command = commandOf(filters);
  const isEmpty = records.length === 0 && nextPageToken === "";
  return (
    <div aria-busy={list.isPlaceholderData}>
      <Decision
        records={records.filter((record) => chosen.has(keyOf(record)))}
        filters={filters}
        isOffered={!isEmpty}
        clear={() => choose(new Set())}
      />
      {isEmpty ? (
        <Empty command={command}>{emptyText(filters, token)}</Empty>
      ) : (
        <DataTable
          caption={
            <>
              {counted(records)}. The first key ends <Time at={first} />: its next claim then runs.{" "}
              {unlinked.length > 0 && "Set a provider link to look each up: "}
              <NamespaceLinks names={unlinked} field={LINK_FIELD} />
              {unlinked.length > 0 && ". "}
              <span className={common.keys}>J and K lead from row to row, X selects, Y and N answer.</span>
            </>
          }
          columns={columnsOf(links)}
          rows={groups.flatMap(({ rows }) => rows)}
          groups={groups}
          rowKey={keyOf}
          href={({ namespace, key }) => recordHref(namespace, key, "ambiguous", search)}
          selection={{ chosen, choose, nameOf: ({ key }) => key }}
        />
      )}
      <Pager nextPageToken={nextPageToken} />
      {!isEmpty && <CliHint command={command} />}
    </div>
  );
}

interface GroupHeadingProps {
  readonly owner: string;
  /** How many records the group has, and of what. */
  readonly left: string;
  readonly first: Record;
  readonly search: string;
}

function GroupHeading({ owner, left, first, search }: GroupHeadingProps) {
  return (
    <>
      <b>{owner === "" ? "No owner" : <UserText>{owner}</UserText>}</b> {left}, the oldest{" "}
      <Time at={first.leaseExpiresAt} />{" "}
      {owner !== "" && (
        <Link href={hereWith(`?${withParameters(search, { owner })}`)}>All of this owner</Link>
      )}
    </>
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
  readonly clear: () => void;
}

/** What is decided about the chosen records, or about all that match. A dialog stays open if the last record leaves the list. */
function Decision({ records, filters, isOffered, clear }: DecisionProps) {
  const count = useAmbiguousCount(filters.namespace, whichOf(filters)).data;
  const all =
    count === undefined
      ? "All"
      : `All ${count.isLowerBound ? "of at least " : ""}${formatCount(count.ambiguous)}`;
  const [isAll, setAll] = useState(false);
  const { buttons, dialog } = useResolution(isAll ? [] : records, clear);
  const [kind, setKind] = useState<ResolutionKind>();
  useShortcut("b", "Decide about all matching records", () => setAll(true));
  const chosen = formatNoun(records.length, "record", "records");
  return (
    <>
      {isOffered && (
        <section className={styles.decision} aria-label="Decision">
          <span role="status">
            {isAll
              ? `${all} that match`
              : records.length === 0
                ? "Select records to decide about them"
                : `${chosen} selected`}
          </span>
          {buttons || <ResolveButtons kinds={KINDS} ask={setKind} isDisabled={!isAll} />}
          <span className={common.quiet}>{RESOLUTIONS.complete.answer}: also if it failed permanently.</span>
          <button type="button" data-look="link" onClick={() => setAll(!isAll)}>
            {isAll ? "Only selected ones" : `${all} that match`}
          </button>
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
      "Key kept until",
      (record) => (
        <>
          <Time at={record.expiresAt} />{" "}
          {endsSoon(record, new Date()) && <StateMark tone="attention" word="Ends soon" />}
        </>
      ),
    ],
    [
      "Last checkpoint",
      ({ checkpoint }) => (checkpoint === undefined ? "none" : <UserText>{checkpoint.name}</UserText>),
    ],
    ["What it saved", ({ checkpoint }) => checkpoint && <UserText>{payloadLine(checkpoint.state)}</UserText>],
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
