import { randomUUID } from "node:crypto";
import { newKey } from "@onceward/client";
import { readUse } from "../cost.ts";
import type { Figure } from "../figure.ts";
import { fillRecords } from "../fill.ts";
import { median } from "../statistics.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;
/** Some for each leaf page of the index, as between two checkpoints of a small installation. */
const CLAIMS = 50_000;
const QUICK_CLAIMS = 1000;
/** The namespace of the filled rows: the claims' keys are among theirs. */
const NAMESPACES = ["filled"];

const TURNS = 3;

/** What a claim uses. */
interface Use {
  readonly bytes: number;
  readonly micros: number;
}

function medianOf(uses: readonly Use[]): Use {
  return { bytes: median(uses.map(({ bytes }) => bytes)), micros: median(uses.map(({ micros }) => micros)) };
}

/**
 * Measures P20: the log and Postgres' processor time of claims among many rows, of random keys (UUIDs of version 4) and of keys
 * in the order of their time (`newKey()`). By turns; each turn begins with a checkpoint, after which the first change of a page logs the
 * whole page.
 */
export const measureKeyOrder: Figure = async ({ rig, options, violations, signal, progress }) => {
  await using station = await rig.startStation();
  const { client, database, server } = station;
  progress(`filling a table with ${options.rows} rows`);
  await fillRecords(station, { rows: options.rows, signal });
  const claims = options.quick ? QUICK_CLAIMS : CLAIMS;
  let rows = options.rows;

  async function measureKeys(nextKey: () => string): Promise<Use> {
    const fresh = new FreshClaims(oncewardTarget(client.calls, database, NAMESPACES), violations, nextKey);
    await database.query("checkpoint");
    let left = claims;
    const before = await readUse(server.pid, database);
    const caller = async () => {
      while (left-- > 0 && !signal.aborted) await fresh.claim();
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    const after = await readUse(server.pid, database);
    signal.throwIfAborted();
    await fresh.verify(rows);
    rows += claims;
    return {
      bytes: (after.walBytes - before.walBytes) / claims,
      micros: ((after.postgresS - before.postgresS) / claims) * 1e6,
    };
  }

  const sides = { random: [], ordered: [] } as Record<"random" | "ordered", Use[]>;
  for (let turn = 1; turn <= TURNS; turn++) {
    progress(`${claims} claims of random keys, and of ordered ones, turn ${turn}`);
    sides.random.push(await measureKeys(randomUUID));
    sides.ordered.push(await measureKeys(newKey));
  }
  const random = medianOf(sides.random);
  const ordered = medianOf(sides.ordered);
  const among = `among ${options.rows.toLocaleString("en-US")} rows`;
  return [
    {
      figure: "P20",
      part: "log",
      what: `log of a claim, random keys ÷ newKey(), ${among}`,
      value: random.bytes / ordered.bytes,
      unit: "×",
      raw: { "random bytes": random.bytes, "ordered bytes": ordered.bytes, claims },
    },
    {
      figure: "P20",
      part: "processor",
      what: `Postgres' processor time of a claim, random keys ÷ newKey(), ${among}`,
      value: random.micros / ordered.micros,
      unit: "×",
      raw: { "random µs": random.micros, "ordered µs": ordered.micros, claims },
    },
  ];
};
