import type { Family } from "./case.ts";
import { lackOf, type Verdict } from "./run-cases.ts";

/** What one client made of the cases. */
export interface Column {
  readonly language: string;
  readonly verdicts: readonly Verdict[];
}

/** Returns a table in Markdown: for each family and language, how many cases passed of how many. */
export function renderTable(families: readonly Family[], columns: readonly Column[]): string {
  const heads = ["family", ...columns.map(({ language }) => language)];
  const rows = families.map(({ family, cases }) => [
    family,
    ...columns.map((column) => score(column, cases)),
  ]);
  const all = families.flatMap(({ cases }) => cases);
  const sums = ["all", ...columns.map((column) => score(column, all))];
  return [heads, heads.map(() => "---"), ...rows, sums].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function score({ language, verdicts }: Column, cases: Family["cases"]): string {
  const performed = verdicts.filter((verdict) => cases.includes(verdict.case));
  const passed = performed.filter(({ differences }) => differences.length === 0);
  const lacking = cases.filter((each) => lackOf(each, language) !== undefined);
  const note = lacking.length === 0 ? "" : ` (lacks ${lacking.length})`;
  return `${passed.length}/${performed.length}${note}`;
}

/** Returns the cases that a client does not perform, a line each, with the reason. */
export function renderLacks(families: readonly Family[], columns: readonly Column[]): string {
  const cases = families.flatMap((family) => family.cases);
  return columns
    .flatMap(({ language }) => cases.map((each) => [language, each.name, lackOf(each, language)]))
    .filter(([, , why]) => why !== undefined)
    .map(([language, name, why]) => `${language} lacks "${name}": ${why}\n`)
    .join("");
}

/** Returns the cases that failed, with what was seen otherwise than expected. */
export function renderFailures(columns: readonly Column[]): string {
  return columns
    .flatMap(({ language, verdicts }) =>
      verdicts
        .filter(({ differences }) => differences.length > 0)
        .map((verdict) => [`${language}: ${verdict.case.name}`, ...verdict.differences].join("\n    ")),
    )
    .map((failure) => `\n${failure}\n`)
    .join("");
}
