import { type Finding, meetsBar } from "./finding.ts";

const HEAD = ["", "figure", "value", "bar", "", "from"] as const;

/** Returns the table for a terminal. */
export function plainTable(findings: readonly Finding[]): string {
  const rows = [HEAD, ...findings.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Returns the table for README.md, without the column `from`: rates are those of one machine. */
export function markdownTable(findings: readonly Finding[]): string {
  const rows = [HEAD, HEAD.map(() => "---"), ...findings.map(cells)];
  return rows.map((row) => `| ${row.slice(0, -1).join(" | ")} |`).join("\n");
}

function cells(finding: Finding): readonly string[] {
  const { figure, what, value, unit, bar, raw } = finding;
  const met = meetsBar(finding);
  const limit = bar && ("atLeast" in bar ? `≥ ${number(bar.atLeast)}` : `≤ ${number(bar.atMost)}`);
  const from = Object.entries(raw).map(([name, each]) => `${name} ${number(each)}`);
  const verdict = met === undefined ? "" : met ? "met" : "MISSED";
  return [figure, what, `${number(value)} ${unit}`, limit ?? "", verdict, from.join(", ")];
}

/** Formats a number with three digits, or with all digits before the point. */
export function number(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

/**
 * Returns the content of bench.json: each figure's value, or its values by part; raw values likewise under
 * `raw`.
 */
export function resultJson(
  findings: readonly Finding[],
  violations: number,
): Readonly<Record<string, unknown>> {
  const byFigure = Map.groupBy(findings, ({ figure }) => figure);
  const gather = <Value>(pick: (finding: Finding) => Value) =>
    Object.fromEntries([...byFigure].map(([figure, parts]) => [figure, byPart(parts, pick)]));
  return { ...gather(({ value }) => value), violations, raw: gather(({ raw }) => raw) };
}

function byPart<Value>(parts: readonly Finding[], pick: (finding: Finding) => Value): unknown {
  const [first] = parts;
  if (first !== undefined && first.part === undefined) return pick(first);
  return Object.fromEntries(parts.map((finding) => [finding.part, pick(finding)]));
}
