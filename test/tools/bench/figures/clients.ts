import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { median } from "../statistics.ts";

const run = promisify(execFile);

const CALLERS = [1, 16, 64, 256] as const;
/** Calls that are made at one time are gathered: from this many callers on, a client must be faster than a stub. */
const GATHERING_CALLERS = 16;
/**
 * Client and stub run by turns, so often and so long each: the speed of a virtual machine changes within seconds. The figure is
 * the median of the turns' ratios.
 */
const FULL = { rounds: 3, seconds: 1.5 };
const QUICK = { rounds: 1, seconds: 0.2 };

const TYPESCRIPT = fileURLToPath(new URL("../client-program.ts", import.meta.url));
const PYTHON = fileURLToPath(new URL("../../../../clients/python/", import.meta.url));
const GO = fileURLToPath(new URL("../../../../clients/go/", import.meta.url));

/** A program that measures a language's client and its bare stub. */
interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a program prints, one line each. */
interface Rate {
  readonly language: string;
  /** `onceward` or `stub`, each with an ending if the language has several kinds. */
  readonly client: string;
  readonly callers: number;
  readonly operationsPerSecond: number;
}

/**
 * Measures P22, operations of the clients in TypeScript, Python and Go beside bare stubs of the same languages. Python needs
 * `ONCEWARD_PYTHON`, a Python with the client's dependencies, and Go needs `go`: without it the language is skipped.
 */
export const measureClients: Figure = async ({ main, options, signal, progress }) => {
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-clients-"));
  await using cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  const findings: Finding[] = [];
  for (const [language, find] of Object.entries(PROGRAMS)) {
    signal.throwIfAborted();
    const program = await find(dir);
    if (typeof program === "string") {
      progress(`the client of ${language} is skipped: ${program}`);
      continue;
    }
    progress(`operations of the client of ${language} and of a bare stub`);
    const { rounds, seconds } = options.quick ? QUICK : FULL;
    const env = {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ...program.env,
      ONCEWARD_ADDRESS: `127.0.0.1:${main.server.grpcPort}`,
      ONCEWARD_API_KEY: main.tenant.apiKey,
      ONCEWARD_NAMESPACE: "bench-clients",
      BENCH_CALLERS: CALLERS.join(","),
      BENCH_SECONDS: `${seconds}`,
    };
    const turns: (readonly Rate[])[] = [];
    while (turns.length < rounds) {
      const { stdout } = await run(program.file, program.args, { env, signal });
      turns.push(stdout.trim().split("\n").map(readRate));
    }
    findings.push(...compare(turns));
  }
  return findings;
};

const PROGRAMS: Readonly<Record<string, (dir: string) => Promise<Program | string>>> = {
  typescript: async () => ({
    file: process.execPath,
    args: ["--conditions=@onceward/source", TYPESCRIPT],
  }),
  python: async () => {
    const file = process.env.ONCEWARD_PYTHON;
    if (file === undefined) return "ONCEWARD_PYTHON names no Python with its dependencies";
    return { file, args: [`${PYTHON}bench/main.py`], env: { PYTHONPATH: `${PYTHON}src` } };
  },
  go: async (dir) => {
    const file = join(dir, "bench");
    try {
      await run("go", ["version"]);
    } catch {
      return "there is no go";
    }
    await run("go", ["build", "-C", GO, "-o", file, "./internal/bench"]);
    return { file, args: [] };
  },
};

/** Returns one finding for each kind of client and number of callers. */
function compare(turns: readonly (readonly Rate[])[]): Finding[] {
  return (turns[0] ?? []).flatMap(({ language, client, callers }) => {
    if (!client.startsWith("onceward")) return [];
    const kind = client.slice("onceward".length);
    const clients = turns.map((rates) => rateOf(rates, client, callers));
    const stubs = turns.map((rates) => rateOf(rates, `stub${kind}`, callers));
    return {
      figure: "P22" as const,
      part: `${language}${kind} ${callers}`,
      what: `${language}${kind}, ${callers} callers: operations of the client ÷ a bare stub's`,
      value: median(clients.map((rate, turn) => rate / (stubs[turn] ?? Number.NaN))),
      unit: "×" as const,
      ...(callers >= GATHERING_CALLERS && { bar: { atLeast: 1 } }),
      raw: { "client /s": median(clients), "stub /s": median(stubs) },
    };
  });
}

function rateOf(rates: readonly Rate[], client: string, callers: number): number {
  const found = rates.find((rate) => rate.client === client && rate.callers === callers);
  if (found === undefined) throw new Error(`a program measured no ${client} with ${callers} callers`);
  return found.operationsPerSecond;
}

function readRate(line: string): Rate {
  const { language, client, callers, operationsPerSecond } = JSON.parse(line);
  if (typeof language !== "string" || typeof client !== "string" || !(callers > 0 && operationsPerSecond > 0))
    throw new Error(`a program printed ${line}`);
  return { language, client, callers, operationsPerSecond };
}
