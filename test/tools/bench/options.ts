import { parseArgs } from "node:util";
import { FIGURES, type FigureId } from "./finding.ts";

/** The options of the command line. */
export interface BenchOptions {
  readonly quick: boolean;
  /** The figures to measure; all unless `--only` names some. */
  readonly only: ReadonlySet<FigureId>;
  /** Rows in P7's full table, and the most that `--growth` grows to. */
  readonly rows: number;
  /** The file for the results, as JSON. */
  readonly out: string;
  /** Print the table as Markdown, for README.md. */
  readonly markdown: boolean;
  readonly growth: boolean;
  readonly sizing: boolean;
  /** Configuration variables of every server that is measured. */
  readonly serverEnv: Readonly<Record<string, string>>;
  /** How long to soak; undefined: no soak. */
  readonly soakMs: number | undefined;
}

/** What `--help` prints. */
export const USAGE = `npm run bench -- [OPTION]...

  --quick                  a minute, to see that the bench works
  --only P1,P3             only these figures
  --rows 10M               rows of the full table (P7); default 1M
  --out FILE               where the results are written as JSON; default bench.json
  --markdown               prints the table of the README
  --growth                 also measures how figures change while a table grows
  --sizing                 also measures what a core serves
  --soak 10m               also runs for this long, and looks for growth of memory
  --server-env NAME=value  a setting of every measured server; may be given several times

The figures: test/tools/bench/README.md.`;

/** Filled in about a minute; the bar is for `--rows 10M`, which takes a quarter of an hour. */
const DEFAULT_ROWS = 1_000_000;
const QUICK_ROWS = 20_000;

/** Reads the command line. @throws an error that names the wrong option. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      rows: { type: "string" },
      out: { type: "string", default: "bench.json" },
      markdown: { type: "boolean", default: false },
      growth: { type: "boolean", default: false },
      sizing: { type: "boolean", default: false },
      "server-env": { type: "string", multiple: true, default: [] },
      soak: { type: "string" },
    },
  });
  const { quick, out, markdown, growth, sizing } = values;
  return {
    quick,
    out,
    markdown,
    growth,
    sizing,
    only: values.only === undefined ? new Set(FIGURES) : figures(values.only),
    rows: values.rows === undefined ? (quick ? QUICK_ROWS : DEFAULT_ROWS) : count(values.rows),
    serverEnv: Object.fromEntries(values["server-env"].map(variable)),
    soakMs: values.soak === undefined ? undefined : durationMs(values.soak),
  };
}

function figures(text: string): ReadonlySet<FigureId> {
  const named = text.split(",").map((name) => {
    const figure = FIGURES.find((id) => id === name.trim().toUpperCase());
    if (figure === undefined) throw new Error(`--only takes ${FIGURES.join(",")}, not ${name}`);
    return figure;
  });
  return new Set(named);
}

function variable(text: string): [name: string, value: string] {
  const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new Error(`--server-env takes NAME=value, not ${text}`);
  return [name, value];
}

const MULTIPLES: Readonly<Record<string, number>> = { "": 1, k: 1e3, M: 1e6 };

function count(text: string): number {
  const [, digits, multiple = ""] = /^(\d{1,9})([kM]?)$/.exec(text) ?? [];
  if (digits === undefined) throw new Error(`--rows takes a number such as 200k or 10M, not ${text}`);
  return Number(digits) * (MULTIPLES[multiple] ?? 1);
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

function durationMs(text: string): number {
  const [, digits, unit = ""] = /^(\d{1,6})([smh])$/.exec(text) ?? [];
  if (digits === undefined) throw new Error(`--soak takes a duration such as 90s or 10m, not ${text}`);
  return Number(digits) * (UNITS_MS[unit] ?? 1000);
}
