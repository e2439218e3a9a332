import { formatDurationMs } from "@onceward/words/durations";
import type { PlantedNamespace } from "./planted.ts";
import type { Planted } from "./run.ts";

type Cell = string | number;

const COLUMNS: readonly (readonly [title: string, value: (namespace: PlantedNamespace) => Cell])[] = [
  ["namespace", ({ name, declared }) => (declared ? name : `${name} (undeclared)`)],
  ["retention", ({ keyRetentionS }) => formatDurationMs(1000 * keyRetentionS)],
  ["claims", ({ claims }) => claims],
  ["repeats", (namespace) => repeatsOf(namespace, false)],
  ["late repeats", (namespace) => repeatsOf(namespace, true)],
  ["latest after", ({ repeats }) => duration(Math.max(0, ...repeats.map(({ latenessS }) => latenessS)))],
  ["retries under new keys", ({ mintedKeys }) => mintedKeys.reduce((sum, { keys }) => sum + keys, 0)],
  ["equal orders", ({ lookAlikes }) => lookAlikes],
  ["ambiguous", ({ ambiguous }) => ambiguous],
];

/** Returns the number of planted repeats that were granted (late), or of those that were recognised. */
function repeatsOf({ repeats }: PlantedNamespace, late: boolean): number {
  return repeats.filter((each) => each.late === late).reduce((sum, each) => sum + each.repeats, 0);
}

function duration(seconds: number): string {
  return formatDurationMs(1000 * Math.round(seconds));
}

const CLI = "npm run --silent onceward --";

/** Returns what was planted as a table, and how to look at it. */
export function describePlanted(planted: Planted): readonly string[] {
  const { tenant, days, seed, operations, address, adminKeyFile, namespaces } = planted;
  const rows = [COLUMNS.map(([title]) => title), ...namespaces.map(cellsOf)];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  return [
    "",
    `Planted in tenant ${tenant}:`,
    "",
    ...rows.map((row) => row.map((cell, column) => pad(cell, widths[column] ?? 0, column)).join("  ")),
    "",
    ...namespaces.map(({ name, story }) => `- ${name}: ${story}.`),
    "",
    `The claims of the last ${days} days were made now, by a replica of this command that counted and swept them;`,
    "the time between them passed by moving the tenant's times back in SQL. Only the last claims were made in real time.",
    `--seed ${seed} --days ${days} --operations ${operations} repeats it in a tenant of its own, which the run after it deletes.`,
    "",
    `Sign in to the console with the key in ${adminKeyFile}.`,
    "",
    "Compare with what is found:",
    "",
    `${CLI} login traffic --address ${address} --api-key-stdin < ${adminKeyFile}`,
    ...["payments", "webhooks", "orders"].map((name) => `${CLI} advice ${name}`),
    `${CLI} keys quality emails`,
    `${CLI} records list --state ambiguous --oldest-first`,
    `${CLI} namespaces undeclared`,
  ];
}

function cellsOf(namespace: PlantedNamespace): Cell[] {
  return COLUMNS.map(([, value]) => value(namespace));
}

function pad(cell: Cell, width: number, column: number): string {
  return column === 0 ? String(cell).padEnd(width) : String(cell).padStart(width);
}
