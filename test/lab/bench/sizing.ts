import { randomBytes } from "node:crypto";
import { type Cost, measureCost } from "./cost.ts";
import type { Bench } from "./figure.ts";
import { runSlice, type Step } from "./load.ts";
import { number } from "./report.ts";
import type { Station } from "./rig.ts";
import { FreshClaims, freshKeys } from "./target.ts";
import { oncewardTarget } from "./target-onceward.ts";

/** What one operation uses. */
interface Consumption extends Cost {
  readonly name: string;
}

/** What one completed record takes on the disk. */
interface Space {
  readonly payloadBytes: number;
  readonly tableBytes: number;
  readonly indexBytes: number;
}

const CALLERS = [1, 16, 256];
const PAYLOADS_BYTES = [200, 1024, 16 * 1024];
const SPACE_CALLERS = 256;
const GIB = 2 ** 30;

/**
 * Measures `--sizing`: the processor time and the log that an operation uses, and the space of a record. These
 * depend less on the other load of a machine than rates do. Prints the tables of deploy/sizing.md.
 */
export async function measureSizing(bench: Bench): Promise<void> {
  const used: Consumption[] = [];
  for (const callers of CALLERS) used.push(...(await consumptionAt(bench, callers)));
  const spaces: Space[] = [];
  for (const payloadBytes of PAYLOADS_BYTES) spaces.push(await spaceAt(bench, payloadBytes));
  console.log(`\n${consumptionTable(used)}\n\n${spaceTable(spaces)}\n`);
}

async function consumptionAt(bench: Bench, callers: number): Promise<readonly Consumption[]> {
  bench.progress(`processor time and log, ${callers} callers`);
  await using station = await bench.rig.startStation();
  const fresh = new FreshClaims(oncewardTarget(station.client.calls, station.database), bench.violations);
  const who = callers === 1 ? "1 caller" : `${callers} callers`;
  const claims = await consumption(bench, station, { name: `claim, ${who}`, step: fresh.claim, callers });
  const pairs = await consumption(bench, station, {
    name: `claim and complete, ${who}`,
    step: fresh.pair,
    callers,
  });
  await fresh.verify();
  return [claims, pairs];
}

interface Load {
  readonly name: string;
  readonly step: Step;
  readonly callers: number;
}

async function consumption(
  { pace, signal }: Bench,
  { server, database }: Station,
  { name, step, callers }: Load,
): Promise<Consumption> {
  await runSlice(step, { callers, durationMs: pace.warmUpMs }, signal);
  // The first change of a page after a checkpoint logs the whole page: every phase begins with one.
  await database.query("checkpoint");
  const load = { callers, durationMs: pace.slices * pace.sliceMs };
  return { name, ...(await measureCost({ step, serverPid: server.pid, database }, load, signal)) };
}

async function spaceAt(
  { rig, violations, pace, signal, progress }: Bench,
  payloadBytes: number,
): Promise<Space> {
  progress(`space of records with results of ${payloadBytes} bytes`);
  await using station = await rig.startStation();
  const { client, database } = station;
  const target = oncewardTarget(client.calls, database);
  const nextKey = freshKeys();
  const step = async () => {
    const key = nextKey();
    const token = await target.claim(key);
    if (token === undefined) violations.add(`the fresh key ${key} was not granted`);
    // Random bytes, because Postgres compresses large values.
    else await target.complete(key, token, randomBytes(payloadBytes));
  };
  await runSlice(step, { callers: SPACE_CALLERS, durationMs: pace.slices * pace.sliceMs }, signal);
  const [row] = await database.query<{ table_bytes: number; index_bytes: number }>(
    `select pg_table_size('records')::float8 / count(*) as table_bytes,
            pg_indexes_size('records')::float8 / count(*) as index_bytes
       from records`,
  );
  return { payloadBytes, tableBytes: row?.table_bytes ?? 0, indexBytes: row?.index_bytes ?? 0 };
}

function consumptionTable(rows: readonly Consumption[]): string {
  return markdown(
    [
      "operation",
      "/s here",
      "replica, µs",
      "Postgres, µs",
      "log, bytes",
      "one core of a replica, /s",
      "two cores of Postgres, /s",
    ],
    rows.map(({ name, perSecond, serverMicros, postgresMicros, walBytes }) => [
      name,
      ...[perSecond, serverMicros, postgresMicros, walBytes, 1e6 / serverMicros, 2e6 / postgresMicros].map(
        number,
      ),
    ]),
  );
}

function spaceTable(rows: readonly Space[]): string {
  return markdown(
    ["result, bytes", "table, bytes a record", "indexes, bytes a record", "records in 1 GiB"],
    rows.map(({ payloadBytes, tableBytes, indexBytes }) =>
      [payloadBytes, tableBytes, indexBytes, GIB / (tableBytes + indexBytes)].map(number),
    ),
  );
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}
