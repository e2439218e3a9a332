import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { type PanelOptions, PROMETHEUS, panel } from "./panels.ts";

/** Panels under one heading. */
export interface Section {
  readonly title: string;
  readonly panels: readonly PanelOptions[];
}

/** The rows that are open when the dashboard is: the first answer whether something is wrong. */
const UNFOLDED = 2;

/** A dashboard. `variables` come after `datasource`, `job` (an installation) and `instance` (its replicas). */
export interface DashboardOptions {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly variables: readonly QueryVariableBuilder[];
  readonly sections: readonly Section[];
}

/** Returns a dashboard of Prometheus' data, for import or provisioning. */
export function dashboard({ uid, title, description, variables, sections }: DashboardOptions) {
  const made = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(["onceward"])
    .timezone("browser")
    .time({ from: "now-3h", to: "now" })
    .refresh("30s")
    .withVariable(new DatasourceVariableBuilder("datasource").label("Data source").type("prometheus"))
    .withVariable(variable("job", "Installation", "label_values(onceward_build_info, job)"))
    .withVariable(choice("instance", "Replica", 'label_values(onceward_build_info{job="$job"}, instance)'));
  for (const added of variables) made.withVariable(added);
  let id = 0;
  for (const [index, { title: heading, panels }] of sections.entries()) {
    const row = new RowBuilder(heading).id(++id);
    const built = panels.map((options) => panel(options, ++id));
    // A folded row holds its panels, and does not query for them.
    if (index >= UNFOLDED) for (const each of built) row.withPanel(each);
    made.withRow(row);
    if (index < UNFOLDED) for (const each of built) made.withPanel(each);
  }
  return made.build();
}

/** Returns a variable of which several values or all can be selected. */
export function choice(name: string, label: string, query: string): QueryVariableBuilder {
  const all = { selected: true, text: "All", value: "$__all" };
  return variable(name, label, query).multi(true).includeAll(true).allValue(".*").current(all);
}

/** Returns a variable with the values of a label, read again whenever the time range changes. */
function variable(name: string, label: string, query: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(label)
    .datasource(PROMETHEUS)
    .query(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc);
}
