import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { formatDuration } from "../../format/duration.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { TextField } from "../../parts/field.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { useSession } from "../../session/session.ts";
import { Screen } from "../../shell/screen.tsx";
import type { Advice } from "./candidates.ts";
import styles from "./retention.module.css";
import { ADVISED_AT_ONCE, type AdvisedNamespace, useAdvice } from "./use-advice.ts";
import { judge } from "./verdict.ts";
import { describeVerdict, formatLate, nameVerdict } from "./words.ts";

/** The namespaces with what the evidence says about their retention. */
export function RetentionOverview() {
  return (
    <Screen
      title="Retention"
      lead="How long keys are remembered, and how many duplicates come later: each of those would take effect a second time."
    >
      <NamespaceForm />
      <DeclaredNamespaces />
      <UndeclaredNamespaces />
    </Screen>
  );
}

function DeclaredNamespaces() {
  const { token } = usePageToken();
  const { namespaces: allowed } = useSession();
  const listed = useQuery(
    TenantAdminService.method.listNamespaces,
    { pageSize: ADVISED_AT_ONCE, pageToken: token },
    { enabled: allowed.length === 0 },
  );
  if (allowed.length > 0) return <AdviceTable caption="The namespaces of your key" names={allowed} />;
  if (listed.data === undefined) {
    return listed.error === null ? (
      <Loading rows={ADVISED_AT_ONCE / 2} />
    ) : (
      <ErrorState error={listed.error} retry={listed.refetch} />
    );
  }
  const names = listed.data.namespaces.map(({ name }) => name);
  if (names.length === 0) {
    return (
      <Empty command="onceward retention set NAMESPACE --key 7d">
        No namespace has a policy of its own: all follow the tenant's.
      </Empty>
    );
  }
  return (
    <>
      <AdviceTable caption="Namespaces with a policy of their own" names={names} />
      <Pager nextPageToken={listed.data.nextPageToken} />
    </>
  );
}

/** These follow the tenant's policy; the screen "Namespaces" has all of them. */
function UndeclaredNamespaces() {
  const { namespaces: allowed } = useSession();
  const listed = useQuery(
    TenantAdminService.method.listUndeclaredNamespaces,
    { pageSize: ADVISED_AT_ONCE },
    { enabled: allowed.length === 0 },
  );
  if (listed.data === undefined || listed.data.names.length === 0) return undefined;
  const more = listed.data.nextPageToken === "" ? "" : `, the first ${ADVISED_AT_ONCE}`;
  return (
    <AdviceTable caption={`Namespaces that follow the tenant's policy${more}`} names={listed.data.names} />
  );
}

function AdviceTable({ caption, names }: { readonly caption: string; readonly names: readonly string[] }) {
  const rows = worstFirst(useAdvice(names));
  return (
    <DataTable
      caption={caption}
      rows={rows}
      rowKey={({ name }) => name}
      href={({ name }) => `/retention/${name}`}
      columns={[
        { heading: "Namespace", cell: ({ name }) => name },
        {
          heading: "Key retention",
          kind: "number",
          cell: ({ advice }) => advice && formatDuration(advice.retentionMs),
        },
        {
          heading: "Late duplicates a month",
          kind: "number",
          cell: ({ advice }) => advice && formatLate(evidenceInForce(advice)),
        },
        { heading: "Verdict", cell: (row) => <VerdictCell row={row} /> },
        { heading: "Why", cell: ({ advice }) => advice && describeVerdict(judge(advice)) },
      ]}
    />
  );
}

/** Returns the namespaces with the most late duplicates first; the others stay in their order. */
function worstFirst(rows: readonly AdvisedNamespace[]): readonly AdvisedNamespace[] {
  return rows.toSorted((a, b) => lateOf(b) - lateOf(a));
}

function lateOf({ advice }: AdvisedNamespace): number {
  const verdict = advice && judge(advice);
  return verdict?.kind === "too short" ? verdict.perMonth : 0;
}

function VerdictCell({ row: { advice, error } }: { readonly row: AdvisedNamespace }) {
  if (error !== undefined) return <StateMark tone="quiet">Not answered</StateMark>;
  if (advice === undefined) return <span aria-busy="true" />;
  const { tone, word } = nameVerdict(judge(advice));
  return <StateMark tone={tone}>{word}</StateMark>;
}

function evidenceInForce({ candidates, retentionMs }: Advice) {
  return candidates.find((candidate) => candidate.retentionMs === retentionMs)?.evidence;
}

/** Opens a namespace by its name, without paging to it. */
function NamespaceForm() {
  const [, navigate] = useLocation();
  const [name, setName] = useState("");
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (name.trim() !== "") navigate(`/retention/${encodeURIComponent(name.trim())}`);
  }
  return (
    <search>
      <form className={styles.open} onSubmit={submit}>
        <TextField
          label="Open a namespace"
          value={name}
          maxLength={63}
          onChange={(event) => setName(event.target.value)}
        />
        <button type="submit" data-look="plain">
          Open
        </button>
      </form>
    </search>
  );
}
