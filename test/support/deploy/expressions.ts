import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** A PromQL expression of `deploy/`, and its place. */
export interface Expression {
  readonly where: string;
  readonly expr: string;
}

/** An alert of `deploy/prometheus/rules.yml`. */
export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string; readonly component: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

interface Recording {
  readonly record: string;
  readonly expr: string;
}

interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly w: number };
  readonly targets?: readonly { readonly expr: string }[];
  /** Of a folded row. */
  readonly panels?: readonly Panel[];
}

/** Reads a file of the repository by its path from the root. */
export function readRepositoryFile(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
}

const rules: readonly (Alert | Recording)[] = parse(
  readRepositoryFile("deploy/prometheus/rules.yml"),
).groups.flatMap(({ rules }: { rules: readonly (Alert | Recording)[] }) => rules);

/** The alerts of `deploy/prometheus/rules.yml`. */
export const ALERTS = rules.filter((rule) => "alert" in rule);

/** The recording rules of `deploy/prometheus/rules.yml`. */
export const RECORDINGS = rules.filter((rule) => "record" in rule);

/** The panels of the committed dashboards, also those of folded rows. */
export const PANELS = ["service", "tenants"].flatMap((dashboard) => {
  const { panels } = JSON.parse(readRepositoryFile(`deploy/grafana/${dashboard}.json`));
  const all = (panels as readonly Panel[]).flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  return all.map((panel) => ({ ...panel, where: `${dashboard}.json, "${panel.title}"` }));
});

/** The expressions of the committed dashboards, with their variables. */
export const PANEL_EXPRESSIONS: readonly Expression[] = PANELS.flatMap(({ where, targets = [] }) =>
  targets.map(({ expr }) => ({ where, expr })),
);
