import { useQuery } from "@connectrpc/connect-query";
import { NAMESPACE_PATTERN } from "@onceward/gen/limits.ts";
import type { Policy } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { evidenceInForce } from "@onceward/words/retention-advice";
import { describeVerdict } from "@onceward/words/verdict-words";
import { type FormEvent, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { formatDurationMs } from "../../format/duration.ts";
import { formatNoun } from "../../format/quantity.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { TextField } from "../../parts/field.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty, Loading } from "../../parts/list-states.tsx";
import { useNamespaceNames, useSimilarNames } from "../../parts/namespace-names.ts";
import { hereWith, usePageToken, withParameters } from "../../parts/pages.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { FIELD_NAMES, POLICY_FIELDS, policyText } from "../../policy/policy-fields.ts";
import { useSession } from "../../session/session.ts";
import { Screen } from "../../shell/screen.tsx";
import { useShortcut } from "../../shell/use-shortcut.ts";
import common from "../../styles/common.module.css";
import { ADVISED_AT_ONCE, type AdvisedNamespace, nameVerdict, useAdvice } from "../retention/use-advice.ts";

const NOT_ANSWERED = { tone: "quiet", word: "Not answered" } as const;
/** The parameter of the address that chooses the list. */
const UNDECLARED = "undeclared";

/** The screen "Namespaces": whether the retention of each is long enough, and what it sets itself. */
export default function Namespaces() {
  const { list, prefix } = useFilters(["list", "prefix"]);
  const isUndeclared = list === UNDECLARED;
  const { namespaces: allowed } = useSession();
  const undeclared = useQuery(TenantAdminService.method.listUndeclaredNamespaces, {
    pageSize: ADVISED_AT_ONCE,
  });
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
        <Link href={listHref("", prefix)} aria-current={isUndeclared ? undefined : "page"}>
          Declared
        </Link>
        <Link href={listHref(UNDECLARED, prefix)} aria-current={isUndeclared ? "page" : undefined}>
          Used, not declared
          {undeclared.data && ` ${undeclared.data.names.length}${undeclared.data.nextPageToken && "+"}`}
        </Link>
      </nav>
      <Jump prefix={prefix} />
      {isUndeclared ? (
        <UndeclaredNamespaces prefix={prefix} />
      ) : allowed.length > 0 ? (
        <AdviceTable
          caption="The namespaces of your key"
          names={allowed.filter((name) => name.startsWith(prefix))}
          isAll
        />
      ) : (
        <DeclaredNamespaces prefix={prefix} />
      )}
    </Screen>
  );
}

/** Returns the address of a list whose names begin with a text. */
function listHref(list: string, prefix: string): string {
  const query = withParameters("", { list, prefix });
  return hereWith(query === "" ? "" : `?${query}`);
}

/** Returns a sentence about a list without a namespace. */
function noneOf(prefix: string, otherwise: string): string {
  return prefix === "" ? otherwise : `No namespace of this list begins with ${prefix}.`;
}

/** The namespaces with a policy of their own, by name; if they are one page, those with late duplicates first. */
function DeclaredNamespaces({ prefix }: { readonly prefix: string }) {
  const { token } = usePageToken();
  const request = { pageSize: ADVISED_AT_ONCE, namePrefix: prefix };
  const page = usePage(TenantAdminService.method.listNamespaces, request);
  return (
    <List
      page={page}
      rows={8}
      isEmpty={({ namespaces }) => namespaces.length === 0}
      empty={
        <Empty command="onceward namespaces set NAME --key-retention 72h">
          {noneOf(
            prefix,
            "No namespace is declared: all follow the tenant's policy. Open one by its name to declare it.",
          )}
        </Empty>
      }
    >
      {({ namespaces, totalSize, nextPageToken }) => (
        <AdviceTable
          caption={`${namespaces.length} of ${formatNoun(totalSize, "declared namespace", "declared namespaces")}`}
          isAll={token === "" && nextPageToken === ""}
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

/** The namespaces that have records and no policy of their own; if they are one page, misspelt ones first. */
function UndeclaredNamespaces({ prefix }: { readonly prefix: string }) {
  const { token } = usePageToken();
  const request = { pageSize: ADVISED_AT_ONCE, namePrefix: prefix };
  const page = usePage(TenantAdminService.method.listUndeclaredNamespaces, request);
  return (
    <List
      page={page}
      rows={8}
      isEmpty={({ names }) => names.length === 0}
      empty={
        <Empty command="onceward namespaces undeclared">
          {noneOf(prefix, "Every namespace that has records is declared.")}
        </Empty>
      }
    >
      {({ names, nextPageToken }) => (
        <AdviceTable
          caption="Undeclared namespaces with the tenant's policy"
          isAll={token === "" && nextPageToken === ""}
          names={names}
        />
      )}
    </List>
  );
}

interface AdviceTableProps {
  readonly caption: string;
  /** Whether there is no other page: then misspelt ones, and those with late duplicates, come first. */
  readonly isAll: boolean;
  readonly names: readonly string[];
  /** The fields that each sets itself; undefined: the column is not shown. */
  readonly overrides?: ReadonlyMap<string, string>;
}

function AdviceTable({ caption, isAll, names, overrides }: AdviceTableProps) {
  const advised = useAdvice(names);
  const similarTo = useSimilarNames(overrides === undefined);
  // The advice decides the order of the rows.
  if (advised.some(({ advice, error }) => advice === undefined && error === undefined))
    return <Loading rows={8} />;
  const similarNames = new Map(names.map((name) => [name, similarTo(name)]));
  const isMisspelt = names.some((name) => similarNames.get(name));
  const rankOf = (each: AdvisedNamespace) => (similarNames.get(each.name) ? Number.MAX_VALUE : lateOf(each));
  const rows = isAll ? advised.toSorted((a, b) => rankOf(b) - rankOf(a)) : advised;
  const similar: Column<AdvisedNamespace> = [
    "Name",
    ({ name }) => {
      const other = similarNames.get(name);
      return other && <StateMark tone="attention" word={`Similar to ${other}`} />;
    },
  ];
  const own: Column<AdvisedNamespace> = ["Overrides", ({ name }) => overrides?.get(name) || "nothing"];
  return (
    <DataTable
      caption={`${caption}, ${isAll ? `${isMisspelt ? "misspelt ones" : "those with late duplicates"} first` : "by name"}`}
      rows={rows}
      rowKey={({ name }) => name}
      href={({ name }) => `/namespaces/${name}`}
      columns={[
        ["Namespace", ({ name }) => name],
        ...(isMisspelt ? [similar] : []),
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

/** Lists the namespaces that begin with what is typed, and opens one: Enter opens the first of them, or the name as it is. */
function Jump({ prefix }: { readonly prefix: string }) {
  const [, navigate] = useLocation();
  const { list } = useFilters(["list"]);
  const [typed, setTyped] = useState(prefix);
  const field = useRef<HTMLFormElement>(null);
  const { names, isKnown } = useNamespaceNames(typed);
  const [first = typed] = names.includes(typed) ? [typed] : names;
  const problem =
    typed === "" || NAMESPACE_PATTERN.test(typed)
      ? undefined
      : "Small letters, digits, dots, hyphens and underscores: at most 63.";
  const isNew = problem === undefined && isKnown && names.length === 0;
  useShortcut("f", "Find a namespace", () => field.current?.querySelector("input")?.focus());

  function narrow(text: string): void {
    setTyped(text);
    if (text === "" || NAMESPACE_PATTERN.test(text)) navigate(listHref(list, text), { replace: true });
  }
  function open(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    if (typed !== "" && problem === undefined && isKnown) navigate(`/namespaces/${first}`);
  }

  return (
    <search>
      <form ref={field} className={common.fields} onSubmit={open} data-key="F">
        <TextField
          label="Find, or declare by name"
          problem={problem}
          placeholder="charges"
          value={typed}
          onChange={({ target }) => narrow(target.value.trim())}
        />
        <button type="submit" data-look="plain">
          {typed === "" ? "Open" : isNew ? `Declare ${typed}` : `Open ${first}`}
        </button>
        {typed !== "" && first !== typed && <Link href={`/namespaces/${typed}`}>Declare {typed}</Link>}
      </form>
    </search>
  );
}
