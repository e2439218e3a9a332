import { NAMESPACE_PATTERN } from "@onceward/gen/limits.ts";
import type { Policy } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { evidenceInForce } from "@onceward/words/retention-advice";
import { describeVerdict } from "@onceward/words/verdict-words";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { formatDurationMs } from "../../format/duration.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { TextField } from "../../parts/field.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty, Loading } from "../../parts/list-states.tsx";
import { hereWith } from "../../parts/pages.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { FIELD_NAMES, POLICY_FIELDS, policyText } from "../../policy/policy-fields.ts";
import { useSession } from "../../session/session.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { ADVISED_AT_ONCE, type AdvisedNamespace, useAdvice } from "../retention/use-advice.ts";
import { nameVerdict } from "../retention/words.ts";

const NOT_ANSWERED = { tone: "quiet", word: "Not answered" } as const;
/** The parameter of the address that chooses the list. */
const UNDECLARED = "undeclared";

/** The screen "Namespaces": whether the retention of each is long enough, and what it sets itself. */
export default function Namespaces() {
  const { list } = useFilters(["list"]);
  const isUndeclared = list === UNDECLARED;
  const { namespaces: allowed } = useSession();
  return (
    <Screen
      title="Namespaces"
      lead={
        <>
          A namespace is for one kind of operation, such as charges. It remembers keys for its retention: a
          duplicate that comes later takes effect a second time. What it does not set itself, it inherits from
          the <Link href="/settings">tenant settings</Link>.
        </>
      }
    >
      <nav aria-label="Lists" className={common.links}>
        <Link href={hereWith("")} aria-current={isUndeclared ? undefined : "page"}>
          Declared
        </Link>
        <Link href={hereWith(`?list=${UNDECLARED}`)} aria-current={isUndeclared ? "page" : undefined}>
          Used, not declared
        </Link>
      </nav>
      <OpenByName />
      {isUndeclared ? (
        <UndeclaredNamespaces />
      ) : allowed.length > 0 ? (
        <AdviceTable caption="The namespaces of your key" names={allowed} />
      ) : (
        <DeclaredNamespaces />
      )}
    </Screen>
  );
}

/** The namespaces with a policy of their own: pages are by name, and the rows of a page by late duplicates. */
function DeclaredNamespaces() {
  const page = usePage(TenantAdminService.method.listNamespaces, { pageSize: ADVISED_AT_ONCE });
  return (
    <List
      page={page}
      rows={8}
      isEmpty={({ namespaces }) => namespaces.length === 0}
      empty={
        <Empty command="onceward namespaces set NAME --key-retention 72h">
          No namespace is declared: all follow the tenant's policy. Open one by its name to declare it.
        </Empty>
      }
    >
      {({ namespaces }) => (
        <AdviceTable
          caption="Declared namespaces: those with late duplicates first"
          names={namespaces.map(({ name }) => name)}
          overrides={new Map(namespaces.map(({ name, policy }) => [name, overridesOf(policy)]))}
        />
      )}
    </List>
  );
}

/** Returns the names of the fields that a policy sets. */
function overridesOf(policy: Policy | undefined): string {
  const own = policyText(policy);
  const set = FIELD_NAMES.filter((field) => own[field] !== "");
  return set.map((field) => POLICY_FIELDS[field].label.toLowerCase()).join(", ");
}

/** The namespaces that have records and no policy of their own, by name. */
function UndeclaredNamespaces() {
  const page = usePage(TenantAdminService.method.listUndeclaredNamespaces, { pageSize: ADVISED_AT_ONCE });
  return (
    <List
      page={page}
      rows={8}
      isEmpty={({ names }) => names.length === 0}
      empty={
        <Empty command="onceward namespaces undeclared">Every namespace that has records is declared.</Empty>
      }
    >
      {({ names }) => (
        <AdviceTable
          caption="They have records and follow the tenant's policy. A misspelt namespace shows here."
          names={names}
        />
      )}
    </List>
  );
}

interface AdviceTableProps {
  readonly caption: string;
  readonly names: readonly string[];
  /** The fields that each sets itself; undefined: the column is not shown. */
  readonly overrides?: ReadonlyMap<string, string>;
}

function AdviceTable({ caption, names, overrides }: AdviceTableProps) {
  const advised = useAdvice(names);
  // The advice decides the order of the rows.
  if (advised.some(({ advice, error }) => advice === undefined && error === undefined))
    return <Loading rows={8} />;
  const rows = advised.toSorted((a, b) => lateOf(b) - lateOf(a));
  const own: Column<AdvisedNamespace> = ["Overrides", ({ name }) => overrides?.get(name) || "nothing"];
  return (
    <DataTable
      caption={caption}
      rows={rows}
      rowKey={({ name }) => name}
      href={({ name }) => `/namespaces/${name}`}
      columns={[
        ["Namespace", ({ name }) => name],
        ["Key retention", ({ advice }) => advice && formatDurationMs(advice.retentionMs), "number"],
        ["Long enough?", ({ advice }) => <StateMark {...(advice ? nameVerdict(advice) : NOT_ANSWERED)} />],
        ["Why", ({ advice }) => advice && describeVerdict(advice)],
        ...(overrides === undefined ? [] : [own]),
      ]}
    />
  );
}

function lateOf({ advice }: AdvisedNamespace): number {
  const seen = advice?.verdict === "too short" ? evidenceInForce(advice) : undefined;
  return seen?.kind === "late" ? seen.perMonth : 0;
}

/** Opens a namespace by its exact name: the API lists, and does not search. */
function OpenByName() {
  const [, navigate] = useLocation();
  const [problem, setProblem] = useState<string>();

  function open(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name")).trim();
    if (NAMESPACE_PATTERN.test(name)) navigate(`/namespaces/${name}`);
    else setProblem("Small letters, digits, dots, hyphens and underscores: at most 63.");
  }

  return (
    <search>
      <form className={common.fields} onSubmit={open}>
        <TextField label="Open by name" name="name" problem={problem} placeholder="charges" />
        <button type="submit" data-look="plain">
          Open
        </button>
      </form>
    </search>
  );
}
