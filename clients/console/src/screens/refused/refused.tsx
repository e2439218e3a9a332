import type { RefusedNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { ALL_REFUSALS, CAUSES, causeOf, refusedCount } from "@onceward/words/refusals";
import { useSearchParams } from "wouter";
import { commandLine } from "../../format/command.ts";
import { asTitle, formatCount, formatNoun } from "../../format/quantity.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { FilterBar, NamespaceField, useNamespace } from "../../parts/filter-bar.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { NamespaceLinks } from "../../parts/namespace-links.tsx";
import { RefusedNowTable } from "../../parts/refused-now.tsx";
import { Screen } from "../../shell/screen.tsx";
import { countsOf } from "../home/checks.tsx";
import { useRecentHours, useUsageNow } from "../home/use-hours.ts";

/** The screen "Refused calls": what is refused now and in 24 hours, to whom, and what to do. */
export default function Refused() {
  const [parameters] = useSearchParams();
  const namespace = useNamespace(parameters.get("namespace") ?? "");
  const now = useUsageNow(namespace);
  const day = useRecentHours(namespace, "24h");
  const total = now.data?.total;
  const ofDay = day.bars && countsOf(day.bars);
  const causes = ALL_REFUSALS.filter((name) => ofDay !== undefined && ofDay[name] > 0);
  return (
    <Screen
      title="Refused calls"
      answer={
        total === undefined
          ? "Counting…"
          : `${formatNoun(refusedCount(total), "call was", "calls were")} refused in the last minute.`
      }
    >
      <FilterBar>
        <NamespaceField value={namespace} />
      </FilterBar>
      {now.data === undefined ? (
        <Unanswered query={now} rows={4} />
      ) : now.data.refused.length === 0 ? (
        <Empty>No operation was refused in the last minute.</Empty>
      ) : (
        <RefusedNowTable refused={now.data.refused} isAdvised />
      )}
      <h2>The last 24 hours</h2>
      {ofDay === undefined ? (
        <Unanswered query={day} rows={4} />
      ) : causes.length === 0 ? (
        <Empty>No call was refused.</Empty>
      ) : (
        <DataTable
          caption="Refused calls by cause"
          rows={causes}
          rowKey={(name) => name}
          columns={[
            ["Why", (name) => asTitle(CAUSES[name].phrase)],
            ["Calls", (name) => formatCount(ofDay[name]), "number"],
            ["What to do", (name) => <Remedy cause={CAUSES[name]} refused={now.data?.refused ?? []} />],
          ]}
        />
      )}
      <CliHint command={commandLine("onceward usage now", {}, namespace === "" ? [] : [namespace])} />
    </Screen>
  );
}

/** What to do about a cause, and the policies of the namespaces in which it refuses calls now. */
function Remedy({ cause, refused }: { cause: ReturnType<typeof causeOf>; refused: readonly RefusedNow[] }) {
  const names = new Set(refused.filter((each) => causeOf(each) === cause).map(({ namespace }) => namespace));
  return (
    <>
      {cause.remedy} {cause.field && names.size > 0 && "Policy: "}
      {cause.field && <NamespaceLinks names={[...names]} field={cause.field} />}
    </>
  );
}
