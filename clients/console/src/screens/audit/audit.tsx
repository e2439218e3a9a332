import { MAX_AUDIT_ACTOR_BYTES, MAX_AUDIT_TARGET_BYTES } from "@onceward/gen/limits.ts";
import { actionOf } from "@onceward/words/audit-actions";
import { asTitle } from "../../format/quantity.ts";
import { SelectField, TextField } from "../../parts/field.tsx";
import { FilterBar, TimeField, useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { type Role, useSession } from "../../session/session.ts";
import { Screen } from "../../shell/screen.tsx";
import { ACTION_OPTIONS, unknownAction } from "./actions.ts";
import { EventList } from "./event-list.tsx";
import { ExportButtons } from "./export-buttons.tsx";
import { commandOf, FILTERS, type Filters, requestOf, useEventList } from "./filters.ts";

/** The screen "Audit": who changed what, and which calls were refused. Operators see it for all tenants. */
export default function Audit() {
  const { role } = useSession();
  const filters = useFilters(FILTERS);
  const problem = actionOf(filters.action) === undefined ? unknownAction(filters.action) : undefined;
  return (
    <Screen
      title="Audit"
      lead="Changes that were made, and changes that were refused. Onceward never alters an event, and keeps it for 400 days unless the operator chose another time."
    >
      <FilterBar>
        {fieldsOf(role).map(({ name, placeholder, maxLength }) => (
          <TextField
            key={name}
            label={asTitle(name)}
            defaultValue={filters[name]}
            {...{ name, placeholder, maxLength }}
          />
        ))}
        <SelectField
          label="Action"
          name="action"
          defaultValue={actionOf(filters.action) ?? ""}
          problem={problem}
          options={{ "": "any", ...ACTION_OPTIONS }}
        />
        <SelectField
          label="Outcome"
          name="outcome"
          defaultValue={filters.outcome}
          options={{ "": "any", done: "Done", denied: "Denied" }}
        />
        <SelectField
          label="Sign-ins"
          name="signins"
          defaultValue={filters.signins}
          options={{ "": "Hidden", shown: "Shown" }}
        />
        <TimeField label="After" name="after" value={filters.after} />
        <TimeField label="Before" name="before" value={filters.before} />
      </FilterBar>
      {problem === undefined && <Events filters={filters} />}
    </Screen>
  );
}

/** The fields that are typed; the tenant is the operator's. */
function fieldsOf(role: Role) {
  const isOperator = role === "OPERATOR";
  const shared = [
    { name: "actor", placeholder: "id of a key, or subject", maxLength: MAX_AUDIT_ACTOR_BYTES },
    {
      name: "target",
      placeholder: isOperator ? "tenant acme" : "namespace charges",
      maxLength: MAX_AUDIT_TARGET_BYTES,
    },
  ] as const;
  return isOperator ? [{ name: "tenant", placeholder: "all", maxLength: 63 } as const, ...shared] : shared;
}

function Events({ filters }: { readonly filters: Filters }) {
  const { role } = useSession();
  const { token } = usePageToken();
  const page = usePage(useEventList(), requestOf(filters));
  const isFiltered = token !== "" || FILTERS.some((name) => filters[name] !== "");
  return (
    <List
      page={page}
      rows={12}
      isEmpty={({ events }) => events.length === 0}
      empty={isFiltered ? "No more events match." : "No events."}
      command={commandOf(filters, role)}
    >
      {({ events }) => (
        <>
          <EventList events={events} />
          <ExportButtons filters={filters} />
        </>
      )}
    </List>
  );
}
