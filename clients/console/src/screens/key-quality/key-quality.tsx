import { type KeyQuality, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { suspicionsOf } from "@onceward/words/key-quality-words";
import { Link } from "wouter";
import { commandLine } from "../../format/command.ts";
import { formatCount } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { TextField } from "../../parts/field.tsx";
import { FilterBar, useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Time } from "../../parts/time.tsx";
import { Screen } from "../../shell/screen.tsx";
import { NamespaceQuality, Undecided } from "./namespace-quality.tsx";

/** The screen "Key quality": what is suspected of how callers make their keys. */
export default function KeyQualityScreen() {
  const { namespace } = useFilters(["namespace"]);
  const page = usePage(TenantAdminService.method.getKeyQuality, { namespace });
  return (
    <Screen
      title="Key quality"
      lead="Signs of keys that are not made once for an operation and kept for its retries, from the claims of the last 30 days. A suspicion is not proof, and nothing is refused because of it."
    >
      <FilterBar>
        <TextField label="Namespace" name="namespace" defaultValue={namespace} placeholder="all" />
      </FilterBar>
      <List
        page={page}
        rows={12}
        isEmpty={({ namespaces }) => namespaces.length === 0}
        empty="No claim was counted in the last 30 days."
        command={commandLine("onceward keys quality", {}, namespace === "" ? [] : [namespace])}
      >
        {({ namespaces }) => (
          <>
            {namespaces.filter(isSuspected).map((quality) => (
              <NamespaceQuality key={quality.namespace} quality={quality} />
            ))}
            {!namespaces.every(isSuspected) && (
              <Unsuspected qualities={namespaces.filter((quality) => !isSuspected(quality))} />
            )}
          </>
        )}
      </List>
    </Screen>
  );
}

function isSuspected(quality: KeyQuality): boolean {
  return suspicionsOf(quality).shown.length > 0;
}

function Unsuspected({ qualities }: { readonly qualities: readonly KeyQuality[] }) {
  return (
    <section>
      <h2>No suspicion about their keys so far</h2>
      <DataTable
        caption="Namespaces without a suspicion so far: checks in the fourth column have too few claims"
        columns={[
          ["Namespace", ({ namespace }) => namespace],
          ["Claims", ({ claims }) => formatCount(claims), "number"],
          ["Counted since", ({ observedSince }) => <Time at={observedSince} form="absolute" />],
          ["Too early to say", ({ undecided }) => <Undecided undecided={undecided} />],
          ["Retention", ({ namespace }) => <Link href={`/namespaces/${namespace}`}>Long enough?</Link>],
        ]}
        rows={qualities}
        rowKey={({ namespace }) => namespace}
      />
    </section>
  );
}
