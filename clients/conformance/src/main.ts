import { parseArgs } from "node:util";
import type { AdapterCommand } from "./adapter.ts";
import { loadFamilies } from "./case.ts";
import { typescriptAdapter } from "./languages.ts";
import { runCases } from "./run-cases.ts";
import { type Column, renderFailures, renderTable } from "./table.ts";

/**
 * `npm run conformance [-- typescript] [--only TEXT]`: has clients perform the cases, and prints a table of families and
 * languages with what failed. Exits 1 if a case failed.
 */
const ADAPTERS: Readonly<Record<string, () => AdapterCommand>> = { typescript: typescriptAdapter };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: "string", default: "" } },
});

const families = loadFamilies();
const cases = families.flatMap((family) => family.cases).filter(({ name }) => name.includes(values.only));
const columns: Column[] = [];
for (const language of positionals.length > 0 ? positionals : Object.keys(ADAPTERS)) {
  const adapter = ADAPTERS[language];
  if (adapter === undefined) throw new Error(`${language} is not one of ${Object.keys(ADAPTERS).join(", ")}`);
  columns.push({ language, verdicts: await runCases(adapter(), cases) });
}
process.stdout.write(`${renderTable(families, columns)}\n${renderFailures(columns)}`);
if (columns.some(({ verdicts }) => verdicts.some(({ differences }) => differences.length > 0)))
  process.exitCode = 1;
