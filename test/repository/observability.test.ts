import { expect, test } from "vitest";
import { CATALOGUE } from "../../server/src/domain/refusal.ts";
import { DEGRADED_REASONS } from "../../server/src/domain/replica.ts";
import { BACKGROUND_TASKS } from "../../server/src/telemetry/background-metrics.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";
import {
  ALERTS,
  type Expression,
  PANEL_EXPRESSIONS,
  PANELS,
  RECORDINGS,
  readRepositoryFile,
} from "../support/deploy/expressions.ts";

const METRICS_PAGE = readRepositoryFile("server/metrics.md");
const RUNBOOK = readRepositoryFile("deploy/runbook.md");

const PROXY_PAGE = readRepositoryFile("clients/http-proxy/README.md");

/** Labels by metric, as `server/metrics.md` says, which `metrics-reference.test.ts` holds to the server, and the proxy's page. */
const documented = [
  ...(METRICS_PAGE + PROXY_PAGE).matchAll(/^\| `(onceward_[a-z_]+)(?:\{([a-z,]+)\})?` \| (\w+) \|/gm),
].map(([, name = "", labels = "", type = ""]) => ({ name, type, labelNames: labels.split(",") }));
const LABELS = new Map(
  [...createMetrics("0.0.0").describe(), ...documented].flatMap(({ name, type, labelNames }) =>
    seriesOf(name, type).map((series) => [series, labelNames] as const),
  ),
);
/** Labels that Prometheus adds. */
const ADDED_LABELS = ["job", "instance", "le", "sli"];

/** Returns the names under which Prometheus stores a metric. */
function seriesOf(name: string, type: string): readonly string[] {
  if (type !== "histogram" && type !== "summary") return [name];
  return ["_bucket", "_sum", "_count"].map((ending) => name + ending);
}

const EXPRESSIONS: readonly Expression[] = [
  ...PANEL_EXPRESSIONS,
  ...ALERTS.map(({ alert, expr }) => ({ where: alert, expr })),
  ...RECORDINGS.map(({ record, expr }) => ({ where: record, expr })),
];

test.each(EXPRESSIONS)("$where reads only metrics and labels that exist: $expr", ({ expr }) => {
  const withoutText = expr.replace(/"[^"]*"/g, '""');
  const used = [...withoutText.matchAll(/(?<![\w:])((?:onceward|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
  const recorded = withoutText.match(/\w+:\w+:\w+/g) ?? [];
  expect(used.length + recorded.length + Number(/\b(up|probe_success)\{/.test(expr))).toBeGreaterThan(0);
  expect(recorded.filter((name) => !RECORDINGS.some(({ record }) => record === name))).toEqual([]);
  expect(used.map(([, name = ""]) => name).filter((name) => !LABELS.has(name))).toEqual([]);
  for (const [, name = "", selector = ""] of used) {
    const selected = [...selector.matchAll(/(\w+) *[=!]/g)].map(([, label = ""]) => label);
    expect([...ADDED_LABELS, ...(LABELS.get(name) ?? [])]).toEqual(expect.arrayContaining(selected));
  }
  const grouped = [...withoutText.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
  const known = [...ADDED_LABELS, ...used.flatMap(([, name = ""]) => LABELS.get(name) ?? [])];
  expect(known).toEqual(expect.arrayContaining(grouped));
});

test.each(PANELS)("$where lies within the 24 columns of Grafana", ({ gridPos: { x, w } }) => {
  expect(x + w).toBeLessThanOrEqual(24);
});

test("the outcomes and codes that count as failed are those that the service causes", () => {
  const codes = ["DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE"];
  const outcomes = Object.entries(CATALOGUE)
    .filter(([, code]) => codes.includes(code))
    .map(([reason]) => reason.toLowerCase())
    // Its code is FAILED_PRECONDITION, because no retry helps; but the missing key is the service's.
    .concat("record_unreadable")
    .sort();
  const selected = (label: string) =>
    RECORDINGS.flatMap(({ expr }) => [...expr.matchAll(new RegExp(`${label}=~"([^"]*)"`, "g"))]).map(
      ([, values = ""]) => values.split("|").sort(),
    );
  // One recording for each of five windows. UNKNOWN is the code of errors that are not the server's own.
  expect(selected("outcome")).toEqual(Array(5).fill(outcomes));
  expect(selected("code")).toEqual(Array(5).fill([...codes, "UNKNOWN"].sort()));
  const page = readRepositoryFile("deploy/observability.md");
  const [, row = ""] = /^\| errors, of operations \| ([^|]*) \|/m.exec(page) ?? [];
  expect(namesIn(row).toSorted()).toEqual(outcomes);
});

test.each(["deploy/runbook.md", "deploy/observability.md", "clients/cli/operators.md"])(
  "every metric that %s names exists",
  (page) => {
    const named = readRepositoryFile(page).match(/\bonceward_[a-z_]+/g) ?? [];
    // A command may select several metrics by the beginning of their names.
    const unknown = named.filter((name) => ![...LABELS.keys()].some((metric) => metric.startsWith(name)));
    expect(named.length).toBeGreaterThan(0);
    expect(unknown).toEqual([]);
  },
);

/** The runbook's sections that begin with their alerts, and with the state in `onceward_degraded` if there is one. */
const INDEX = [...RUNBOOK.matchAll(/^## (.+)\n\nAlerts? ([^.]*)\.\n([\s\S]*?)(?=^## )/gm)].map(
  ([, heading = "", first = "", text = ""]) => {
    const [alerts = "", states = ""] = first.split("state");
    return { anchor: anchorOf(heading), alerts: namesIn(alerts), states: namesIn(states), text };
  },
);

function namesIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
}

test("the runbook lists each alert once, under the anchor to which the alert leads", () => {
  const listed = INDEX.flatMap(({ anchor, alerts }) =>
    alerts.map((alert) => [alert, `deploy/runbook.md#${anchor}`]),
  );
  const leading = ALERTS.map(({ alert, annotations }) => [alert, annotations.runbook_url]);
  expect(listed.toSorted()).toEqual(leading.toSorted());
});

test.each(ALERTS)(
  "$alert has a component, and reads metrics of installations of Onceward only",
  ({ labels, expr }) => {
    expect(labels.component).toMatch(/^[a-z]+$/);
    expect(labels.severity).toMatch(/^(?:page|ticket)$/);
    // Recorded series carry the job that their recording selects.
    const selectors = [...expr.matchAll(/(?<![\w:])(?:onceward_\w+|up)\b(\{[^}]*\})?/g)];
    for (const [text, selector = ""] of selectors) {
      expect([text, selector.includes('job=~".*onceward.*"')]).toEqual([text, true]);
    }
  },
);

test.each(RECORDINGS)("$record reads metrics of installations of Onceward only", ({ expr }) => {
  const selectors = [...expr.matchAll(/(?<![\w:])onceward_\w+(\{[^}]*\})?/g)];
  expect(selectors.length + (expr.match(/\w+:\w+:\w+/g) ?? []).length).toBeGreaterThan(0);
  for (const [text, selector = ""] of selectors) {
    expect([text, selector.includes('job=~".*onceward.*"')]).toEqual([text, true]);
  }
});

test("the table of incidents has each alert", () => {
  const page = readRepositoryFile("deploy/observability.md");
  const table = page.slice(page.indexOf("## Which alert comes"), page.indexOf("## Objectives"));
  const missing = ALERTS.map(({ alert }) => alert).filter((alert) => !table.includes(alert));
  expect(missing).toEqual([]);
});

test("the runbook lists each degraded state once", () => {
  expect(INDEX.flatMap(({ states }) => states).toSorted()).toEqual([...DEGRADED_REASONS].sort());
});

test("the runbook says what each background task's failures mean; metrics.md lists it", () => {
  const { text = "" } = INDEX.find(({ anchor }) => anchor === "a-background-task-fails") ?? {};
  const tasks = [...text.matchAll(/^- (`[a-z_]+`(?:, `[a-z_]+`)*): /gm)];
  expect(tasks.flatMap(([, cell = ""]) => namesIn(cell)).toSorted()).toEqual([...BACKGROUND_TASKS].sort());
  const [, row = ""] = /^\| `onceward_background_errors_total\{task\}` \| (.*) \|$/m.exec(METRICS_PAGE) ?? [];
  expect(namesIn(row).toSorted()).toEqual([...BACKGROUND_TASKS].sort());
});

test.each(INDEX)("the runbook's section $anchor has Means, Look, Do and Done when", ({ text }) => {
  const parts = [...text.matchAll(/^\*\*(Means|Look|Do|Done when)\*\*/gm)].map(([, part]) => part);
  expect(parts).toEqual(["Means", "Look", "Do", "Done when"]);
});

/** Returns the anchor that the forge gives to a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
