import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { factsOf, SECRETS, VARIABLES, type VariableSchema } from "../../../server/src/config/variables.ts";
import { VERSION } from "../../../server/src/version.ts";
import { CHART, readChartValues } from "./values.ts";
import { valuesSchema } from "./values-schema.ts";

/** Files that the chart carries as copies: Helm packages only files of the chart's folder. */
const RULES = fileURLToPath(new URL("../../../deploy/prometheus/rules.yml", import.meta.url));
const SERVICE_ROLE = fileURLToPath(new URL("../../../deploy/postgres/service-role.sql", import.meta.url));
const GRAFANA = fileURLToPath(new URL("../../../deploy/grafana/", import.meta.url));
const DASHBOARDS = readdirSync(GRAFANA).filter((name) => name.endsWith(".json"));
/**
 * Texts of the rules that are values of the chart, and what the chart's template replaces by them; @job@ is the release's own. With an
 * alert, only in its rule: another one may have the same threshold.
 */
const RULE_VALUES: readonly (readonly [text: string, placeholder: string, alert?: string])[] = [
  ['job=~".*onceward.*"', 'job="@job@"'],
  ["deploy/runbook.md", "@runbookUrl@"],
  ["* 0.001", "* @errorBudget@"],
  ["* 0.01", "* @slowClaimBudget@"],
  ["< 7 * 86400", "< @certificateDays@ * 86400", "OncewardCertificateExpires"],
  ["> 1\n", "> @quotaRefusalsPerSecond@\n", "OncewardQuotaRefusals"],
  ["for: 1h\n", "for: @ambiguousFor@\n", "OncewardAmbiguousBacklog"],
];
const SECRETS_BLOCK = /^secrets:\n(?: .*\n)*/m;

/** What the chart does with a secret, beyond the setting's description. */
const SECRET_NOTES: Readonly<Record<string, string>> = {
  DATABASE_DIRECT_URL: "Given to migrations only: it may be the URL of the tables' owner.",
};

/** Returns the texts of the chart's generated files, by their paths in its folder. */
export function chartFiles(): Readonly<Record<string, string>> {
  const read = (name: string) => readFileSync(`${CHART}${name}`, "utf8");
  const valuesText = read("values.yaml").replace(SECRETS_BLOCK, secretsBlock());
  const values = readChartValues(valuesText);
  return {
    "values.yaml": valuesText,
    "Chart.yaml": read("Chart.yaml")
      .replace(/^version: .*$/m, `version: ${VERSION}`)
      .replace(/^appVersion: .*$/m, `appVersion: "${VERSION}"`),
    "values.schema.json": `${JSON.stringify(valuesSchema(values), null, 2)}\n`,
    "files/rules.yml": rulesWithPlaceholders(),
    "files/service-role.sql": readFileSync(SERVICE_ROLE, "utf8"),
    ...Object.fromEntries(
      DASHBOARDS.map((name) => [`files/dashboards/${name}`, readFileSync(`${GRAFANA}${name}`, "utf8")]),
    ),
  };
}

/** Returns the rules with a placeholder for each text that is a value. */
function rulesWithPlaceholders(): string {
  return withPlaceholders(readFileSync(RULES, "utf8"));
}

/** @throws Error if the rules, or the rule of an alert, lack a text. */
export function withPlaceholders(rules: string): string {
  const parts = rules.split(/^(?= *- alert: )/m);
  for (const [text, placeholder, alert] of RULE_VALUES) {
    const isMeant = (part: string) =>
      part.includes(text) && (alert === undefined || part.trimStart().startsWith(`- alert: ${alert}\n`));
    if (!parts.some(isMeant))
      throw new Error(`deploy/prometheus/rules.yml lacks "${text}" of ${alert ?? "any rule"}`);
    for (const [index, part] of parts.entries())
      if (isMeant(part)) parts[index] = part.replaceAll(text, placeholder);
  }
  return parts.join("");
}

/** Returns `secrets` of `values.yaml`: every secret setting, with its description. */
function secretsBlock(): string {
  const entries = SECRETS.map((name) => {
    const schema = (VARIABLES as Readonly<Record<string, VariableSchema>>)[name];
    if (schema === undefined) throw new Error(`${name} is not a setting`);
    const { description, isRequired } = factsOf(schema);
    const notes = [isRequired ? "Required." : "", forChart(description), SECRET_NOTES[name] ?? ""];
    return `  # ${notes.filter((note) => note !== "").join(" ")}\n  ${name}: { existingSecret: "", key: "" }\n`;
  });
  return `secrets:\n${entries.join("")}`;
}

/** Without links, which lead to parts of server/settings.md, and without what `npm start` does. */
function forChart(description: string): string {
  return description.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/ `npm start`[^.]*\./, "");
}
