import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { SECRETS, VARIABLES } from "../../server/src/config/variables.ts";
import { chartFiles, withPlaceholders } from "../support/chart/chart-files.ts";
import { configSchema, SET_BY_CHART } from "../support/chart/config-schema.ts";
import { CHART } from "../support/chart/values.ts";

const values = parse(readFileSync(join(CHART, "values.yaml"), "utf8"));

test("the chart's generated files are current; `npm run generate` writes them", () => {
  for (const [name, text] of Object.entries(chartFiles())) {
    expect([name, readFileSync(join(CHART, name), "utf8")]).toEqual([name, text]);
  }
});

test("a new alert keeps its threshold, also where that of another one is a value of the chart", () => {
  const rules = readFileSync("deploy/prometheus/rules.yml", "utf8");
  const own = [
    "      - alert: OncewardExample",
    "        expr: sum(rate(onceward_example_total[5m])) > 1",
    "        for: 1h",
    "        labels: { severity: ticket, component: tenants }",
    "",
  ].join("\n");
  const quota = rules.indexOf("      - alert: OncewardQuotaRefusals");
  const carried = withPlaceholders(`${rules.slice(0, quota)}${own}${rules.slice(quota)}`);
  expect(carried).toContain(own);
  expect(carried.replace(own, "")).toBe(withPlaceholders(rules));
});

test("the chart can give the server every setting, in one way", () => {
  const ways = [Object.keys(configSchema().properties ?? {}), SECRETS, Object.keys(SET_BY_CHART)];
  expect(ways.flat().sort()).toEqual(Object.keys(VARIABLES).sort());
  expect(Object.keys(values.secrets).sort()).toEqual([...SECRETS].sort());
});

test("the chart carries every dashboard, each far below the 1 MiB of a ConfigMap", () => {
  const dashboards = Object.entries(chartFiles()).filter(([name]) => name.startsWith("files/dashboards/"));
  expect(dashboards.map(([name]) => name)).toEqual([
    "files/dashboards/service.json",
    "files/dashboards/tenants.json",
  ]);
  for (const [, text] of dashboards) expect(text.length).toBeLessThan(2 ** 19);
});

test("every object of the chart has its labels, and so commonLabels", () => {
  const templates = readdirSync(join(CHART, "templates")).filter((name) => name.endsWith(".yaml"));
  for (const name of templates) {
    const text = readFileSync(join(CHART, "templates", name), "utf8");
    const objects = text.match(/^kind: /gm)?.length ?? 0;
    const labelled =
      text.match(/^metadata:(?:\n .*)*?\n +\{\{- include "onceward\.labels(With)?"/gm)?.length ?? 0;
    // The templates of pods have the same labels.
    expect([name, labelled]).toEqual([name, name === "migrate-job.yaml" ? objects + 1 : objects]);
  }
});

test("settings have the ranges of the server", () => {
  expect(configSchema().properties).toMatchObject({
    ONCEWARD_POOL_SIZE: { minimum: 2, maximum: 200 },
    ONCEWARD_DRAIN_DELAY: { pattern: "^[0-9]{1,9}(ms|s|m|h|d)$" },
    ONCEWARD_PGBOUNCER: { enum: [true, false, "true", "false", null] },
    ONCEWARD_LOG_LEVEL: { enum: expect.arrayContaining(["info", "silent", null]) },
    ONCEWARD_HOST: { type: ["string", "null"] },
  });
});

test("the chart counts connections by the server's default size of a pool", () => {
  const template = readFileSync(join(CHART, "templates/validate.yaml"), "utf8");
  expect(template).toContain(`ONCEWARD_POOL_SIZE | default ${VARIABLES.ONCEWARD_POOL_SIZE.pipe[0].default}`);
});

test("every map of the schema refuses members that it does not know", () => {
  const open: string[] = [];
  const visit = (schema: { properties?: object; additionalProperties?: unknown }, path: string) => {
    if (schema.properties === undefined) return;
    if (schema.additionalProperties !== false) open.push(path);
    for (const [name, inner] of Object.entries(schema.properties)) visit(inner, `${path}.${name}`);
  };
  visit(JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")), "");
  expect(open).toEqual([]);
});
