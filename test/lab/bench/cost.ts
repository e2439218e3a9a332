import type { BenchDatabase } from "./database.ts";
import type { Bench } from "./figure.ts";
import { runSlice, type Step } from "./load.ts";
import { parentOf, processorTimeOf, processorTimeOfFamily } from "./processor-time.ts";
import { median } from "./statistics.ts";

/** What one step uses. Depends less on the other load of a machine than rates do. */
export interface Cost {
  readonly perSecond: number;
  /** Processor time of the server, in microseconds; 0 without one. */
  readonly serverMicros: number;
  /** Processor time of the bench's own process, in microseconds. */
  readonly clientMicros: number;
  /** Processor time of all of Postgres, in microseconds. */
  readonly postgresMicros: number;
  /** Bytes of the write-ahead log. */
  readonly walBytes: number;
}

/** A step, and the processes that it uses beside the bench. */
export interface Costly {
  readonly step: Step;
  /** Undefined: the step uses no server. */
  readonly serverPid: number | undefined;
  readonly database: BenchDatabase;
}

/** Repeats a step as `runSlice`, and returns what each used. Nothing else may use the same Postgres meanwhile. */
export async function measureCost(
  { step, serverPid, database }: Costly,
  load: { readonly callers: number; readonly durationMs: number },
  signal: AbortSignal,
): Promise<Cost> {
  let count = 0;
  const counted = async () => {
    await step();
    count++;
  };
  const before = await readUse(serverPid, database);
  const { perSecond } = await runSlice(counted, load, signal);
  const after = await readUse(serverPid, database);
  const each = (from: number, to: number) => (to - from) / count;
  return {
    perSecond,
    serverMicros: each(before.serverS, after.serverS) * 1e6,
    clientMicros: each(before.clientS, after.clientS) * 1e6,
    postgresMicros: each(before.postgresS, after.postgresS) * 1e6,
    walBytes: each(before.walBytes, after.walBytes),
  };
}

/** Returns what the processes have used so far: processor time in seconds, and bytes of the log. */
export async function readUse(serverPid: number | undefined, database: BenchDatabase) {
  const [row] = await database.query<{ pid: number; wal_bytes: number }>(
    "select pg_backend_pid() as pid, (pg_current_wal_insert_lsn() - '0/0')::float8 as wal_bytes",
  );
  const { user, system } = process.cpuUsage();
  return {
    serverS: serverPid === undefined ? 0 : await processorTimeOf(serverPid),
    clientS: (user + system) / 1e6,
    postgresS: await processorTimeOfFamily(await parentOf(row?.pid ?? 0)),
    walBytes: row?.wal_bytes ?? 0,
  };
}

/** Measures steps by turns, each with so many callers; returns medians. All use the same Postgres. */
export async function compareCosts<Name extends string>(
  { pace, signal, progress }: Bench,
  what: string,
  sides: Readonly<Record<Name, Costly>>,
  callers: number,
): Promise<Readonly<Record<Name, Cost>>> {
  progress(`processor time of a ${what}, ${callers} callers`);
  const names = Object.keys(sides) as Name[];
  const load = { callers, durationMs: pace.sliceMs };
  for (const name of names) await runSlice(sides[name].step, { ...load, durationMs: pace.warmUpMs }, signal);
  await sides[names[0] as Name].database.query("checkpoint");
  const turns = new Map<Name, Cost[]>(names.map((name) => [name, []]));
  for (let turn = 0; turn < pace.slices; turn++) {
    for (const name of turn % 2 === 0 ? names : names.toReversed())
      turns.get(name)?.push(await measureCost(sides[name], load, signal));
  }
  const costs = [...turns].map(([name, own]) => [name, medians(own)] as const);
  return Object.fromEntries(costs) as Readonly<Record<Name, Cost>>;
}

function medians(costs: readonly Cost[]): Cost {
  const of = (name: keyof Cost) => median(costs.map((cost) => cost[name]));
  return {
    perSecond: of("perSecond"),
    serverMicros: of("serverMicros"),
    clientMicros: of("clientMicros"),
    postgresMicros: of("postgresMicros"),
    walBytes: of("walBytes"),
  };
}
