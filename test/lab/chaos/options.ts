import { readCommandLine } from "../../../server/dev/command-line.ts";

/** The options of the command line. */
export interface ChaosOptions {
  readonly durationMs: number;
  readonly seed: number;
  /** Undefined: every fault that can be injected here. */
  readonly faults: readonly string[] | undefined;
  readonly replicas: number;
  /** The file for the report, as JSON. */
  readonly out: string;
  /** Whether the run is on a Citus, and not on one Postgres. */
  readonly citus: boolean;
}

/** The names of the faults on one Postgres, and on a Citus. */
export interface KnownFaults {
  readonly postgres: readonly string[];
  readonly citus: readonly string[];
}

const MAX_MINUTES = 240;
const MAX_REPLICAS = 9;

function usage({ postgres }: KnownFaults): string {
  return `npm run chaos -- [OPTIONS], and chaos:citus and chaos:late: records histories of the service under faults and judges
them. Exits 1 on any violation or timeout.
  --minutes N    how long, up to ${MAX_MINUTES}; default: 2
  --seed N       the seed of calls and faults; default: 1
  --faults A,B   none, or some of ${postgres.join(" ")}; default: all
  --replicas N   up to ${MAX_REPLICAS}; default: 3
  --out FILE     the report, as JSON; default: chaos.json`;
}

/**
 * Reads the command line. `--help` and unknown options end the process.
 *
 * @throws an error that names an option with a wrong value.
 */
export function readOptions(args: readonly string[], known: KnownFaults): ChaosOptions {
  const { values } = readCommandLine(usage(known), {
    args,
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string", default: "1" },
      faults: { type: "string" },
      replicas: { type: "string", default: "3" },
      out: { type: "string", default: "chaos.json" },
      citus: { type: "boolean", default: false },
    },
  });
  const names = values.citus ? known.citus : known.postgres;
  return {
    durationMs: number(values.minutes, "--minutes", MAX_MINUTES) * 60_000,
    seed: Math.floor(number(values.seed, "--seed", 2 ** 32 - 1)),
    faults: values.faults === undefined ? undefined : faults(values.faults, names),
    replicas: Math.floor(number(values.replicas, "--replicas", MAX_REPLICAS)),
    out: values.out,
    citus: values.citus,
  };
}

function number(text: string, option: string, max: number): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0 && value <= max)) throw new Error(`${option} takes a number up to ${max}, not ${text}`);
  return value;
}

function faults(text: string, known: readonly string[]): readonly string[] {
  if (text === "none") return [];
  const named = text.split(",").map((name) => name.trim());
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new Error(`--faults takes none or some of ${known.join(",")}, not ${unknown}`);
  return named;
}
