import { parseArgs } from "node:util";
import { FIGURES, type FigureId } from "./finding.ts";

/** What `--help` prints. */
export const HELP = `npm run bench -- [OPTIONS]

  --quick                  every figure in a minute; too short to judge by
  --only P1,P3             some of the figures: ${FIGURES.join(" ")}
  --rows 10M               rows in the table of P7 (1M)
  --out FILE               the file for the results, as JSON (bench.json)
  --markdown               prints the table as Markdown
  --server-env NAME=value  a configuration variable of every server; may be repeated

Instead of the figures:
  --sizing                 processor time and log of an operation, and the space of a record

test/lab/bench/README.md describes each figure and its bar.`;

/** The options of the command line. */
export interface BenchOptions {
  /** Print `HELP`, and measure nothing. */
  readonly help: boolean;
  readonly quick: boolean;
  /** The figures to measure; all unless `--only` names some. */
  readonly only: ReadonlySet<FigureId>;
  /** Rows in P7's full table. */
  readonly rows: number;
  /** The file for the results, as JSON. */
  readonly out: string;
  /** Print the table as Markdown, for README.md. */
  readonly markdown: boolean;
  readonly sizing: boolean;
  /** Configuration variables of every server that is measured. */
  readonly serverEnv: Readonly<Record<string, string>>;
}

/** Filled in about a minute; the bar is for `--rows 10M`, which takes a quarter of an hour. */
const DEFAULT_ROWS = 1_000_000;
const QUICK_ROWS = 20_000;

/** Reads the command line. @throws an error that names the wrong option. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean", short: "h", default: false },
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      rows: { type: "string" },
      out: { type: "string", default: "bench.json" },
      markdown: { type: "boolean", default: false },
      sizing: { type: "boolean", default: false },
      "server-env": { type: "string", multiple: true, default: [] },
    },
  });
  const { help, quick, out, markdown, sizing } = values;
  return {
    help,
    quick,
    out,
    markdown,
    sizing,
    only: values.only === undefined ? new Set(FIGURES) : figures(values.only),
    rows: values.rows === undefined ? (quick ? QUICK_ROWS : DEFAULT_ROWS) : count(values.rows),
    serverEnv: Object.fromEntries(values["server-env"].map(variable)),
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
