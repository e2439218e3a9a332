import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useEffect, useState } from "react";
import { commandLine } from "../../format/command.ts";
import { formatNoun } from "../../format/quantity.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { type Column, type Columns, DataTable } from "../../parts/data-table.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { Quantity } from "../../parts/quantity.tsx";
import { Time } from "../../parts/time.tsx";
import { useSession } from "../../session/session.ts";
import styles from "../../styles/screens.module.css";
import { type CountedState, countNamespaces, type NamespaceCounts, namespacesOf } from "./counts.ts";

/** What is known of a count that a person started. */
interface Progress {
  readonly rows: readonly NamespaceCounts[];
  /** How many namespaces are to be counted; undefined: not known yet. */
  readonly total: number | undefined;
  readonly isAll: boolean;
  readonly end: "running" | "done" | "stopped" | { readonly error: unknown };
}

const START: Progress = { rows: [], total: undefined, isAll: true, end: "running" };

const COLUMNS: Columns<NamespaceCounts> = [
  ["Namespace", ({ namespace }) => namespace],
  number("In progress", "inProgress"),
  number("Lapsed", "lapsed"),
  number("Completed", "completed"),
  number("Released", "released"),
  number("Ambiguous", "ambiguous"),
  ["Ambiguous since", ({ counts }) => <Time at={counts.oldestAmbiguousSince} />],
  ["Count", ({ isWhole }) => (isWhole ? "complete" : "so far")],
];

function number(heading: string, state: CountedState): Column<NamespaceCounts> {
  return [heading, ({ counts }) => <Quantity value={counts[state]} />, "number"];
}

/**
 * Counts records by state: of one namespace, or of one after the other. It reads every record, so it runs when a person
 * asks for it, and can be stopped. Render it with a key of the namespace.
 */
export function Counts({ namespace }: { readonly namespace: string }) {
  const { progress, stop } = useCounts(namespace);
  const { rows, total, isAll, end } = progress;
  return (
    <section aria-labelledby="counts" className={styles.counts}>
      <h2 id="counts">Records by state</h2>
      {rows.length === 0 && end === "running" && <Loading rows={3} />}
      {rows.length === 0 && end === "done" && (
        <Empty command="onceward records count">No namespace has records.</Empty>
      )}
      {rows.length > 0 && (
        <DataTable
          caption={captionOf(progress)}
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => row.namespace}
          href={(row) => `/records?${new URLSearchParams({ namespace: row.namespace })}`}
        />
      )}
      {end === "running" && total !== undefined && (
        <button type="button" onClick={stop}>
          Stop counting
        </button>
      )}
      {!isAll && <p>There are more namespaces: name one in the filter to count it.</p>}
      {typeof end === "object" && <ErrorState error={end.error} />}
      {rows.length > 0 && <CliHint command={commandLine("onceward records count", { namespace })} />}
    </section>
  );
}

function captionOf({ rows, total, end }: Progress): string {
  const counted = `${formatNoun(rows.filter(({ isWhole }) => isWhole).length, "namespace", "namespaces")} counted`;
  if (end === "done") return counted;
  return `${counted} of ${total}${end === "stopped" ? ", stopped" : ""}`;
}

function useCounts(namespace: string): { readonly progress: Progress; readonly stop: () => void } {
  const transport = useTransport();
  const { namespaces: own } = useSession();
  const [progress, setProgress] = useState(START);
  const [controller] = useState(() => ({ current: new AbortController() }));

  useEffect(() => {
    const started = new AbortController();
    controller.current = started;
    const { signal } = started;
    const client = createClient(TenantAdminService, transport);
    const fetchPage = (name: string, pageToken: string) =>
      client.countRecords({ namespace: name, pageToken }, { signal });

    async function run(): Promise<void> {
      const named = namespace === "" ? own : [namespace];
      const { names, isAll } = named.length > 0 ? { names: named, isAll: true } : await namespacesOf(client);
      setProgress({ ...START, isAll, total: names.length });
      for await (const row of countNamespaces(names, fetchPage)) {
        setProgress((before) => ({ ...before, rows: withRow(before.rows, row) }));
      }
      setProgress((before) => ({ ...before, end: "done" }));
    }
    run().catch((error: unknown) => {
      setProgress((before) => ({ ...before, end: signal.aborted ? "stopped" : { error } }));
    });
    return () => started.abort();
  }, [namespace, own, transport, controller]);

  return { progress, stop: () => controller.current.abort() };
}

/** Replaces the last row if it is of the same namespace. */
function withRow(rows: readonly NamespaceCounts[], row: NamespaceCounts): readonly NamespaceCounts[] {
  const others = rows.at(-1)?.namespace === row.namespace ? rows.slice(0, -1) : rows;
  return [...others, row];
}
