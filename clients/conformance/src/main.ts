import { failUsage, readCommandLine } from "../../../server/dev/command-line.ts";
import { loadFamilies } from "./case.ts";
import { goAdapter, pythonAdapters, typescriptAdapter } from "./languages.ts";
import { runCases } from "./run-cases.ts";
import { type Column, renderFailures, renderLacks, renderTable } from "./table.ts";

const USAGE = `npm run conformance -- [typescript] [python] [go] [OPTIONS]: has clients perform the cases, and prints a table
of families and languages with what failed. Exits 1 if a case failed. ONCEWARD_PYTHON names a Python with the Python client's
dependencies; default: python3. The Go client's program is built by go. Default: typescript.
  --only TEXT  the cases with this in their family or name`;

const { values, positionals } = readCommandLine(USAGE, {
  allowPositionals: true,
  options: { only: { type: "string", default: "" } },
});
// biome-ignore lint/style/noProcessEnv: a virtual environment is a matter of the machine.
const { ONCEWARD_PYTHON: python = "python3" } = process.env;

const adapters = [typescriptAdapter(), ...pythonAdapters(python), goAdapter()];
const languages = positionals.length > 0 ? positionals : ["typescript"];
const families = loadFamilies().map(({ cases, ...family }) => ({
  ...family,
  cases: cases.filter(({ name }) => `${family.family}: ${name}`.includes(values.only)),
}));
const cases = families.flatMap((family) => family.cases);
if (cases.length === 0) failUsage(USAGE, `no case has ${values.only} in its family or name`);
const chosen = languages.flatMap((language) => {
  const ofLanguage = adapters.filter((adapter) => adapter.language.split("-")[0] === language);
  return ofLanguage.length > 0 ? ofLanguage : failUsage(USAGE, `there is no client of ${language}`);
});
const columns: Column[] = [];
for (const adapter of chosen)
  columns.push({ language: adapter.language, verdicts: await runCases(adapter, cases) });
process.stdout.write(
  `${renderTable(families, columns)}\n${renderLacks(families, columns)}${renderFailures(columns)}`,
);
if (columns.some(({ verdicts }) => verdicts.some(({ differences }) => differences.length > 0)))
  process.exitCode = 1;
