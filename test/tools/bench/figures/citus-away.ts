import { setTimeout as delay } from "node:timers/promises";
import { OncewardError } from "@onceward/client";
import { readShardMap, shardOf } from "../../../../server/src/features/citus/shard-map.ts";
import type { BenchDatabase } from "../database.ts";
import type { Bench } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { alternate, type Step } from "../load.ts";
import type { Station } from "../rig.ts";
import { FreshClaims, freshKeys } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** Half of them claim keys of each worker. */
const CALLERS = 64;

/** A way to the shards, with the server that takes it. */
export interface CitusWay {
  readonly part: string;
  readonly what: string;
  readonly station: Station;
}

/**
 * Measures claims of one worker's keys while the other worker is down and as many callers ask for its keys, ÷ before. Callers
 * that are refused wait as they are told.
 *
 * @param killWorker ends the server that holds the shards on the node of this host.
 */
export async function measureAwayWorker(
  { violations, pace, signal, progress }: Bench,
  database: BenchDatabase,
  ways: readonly CitusWay[],
  killWorker: (host: string) => void,
): Promise<readonly Finding[]> {
  progress(`claims on Citus while a worker is down, ${CALLERS} callers`);
  const placed =
    (await readShardMap({ run: ({ text }, values) => database.query<never>(text, values) })) ?? [];
  const [kept, lost] = [...new Set(placed.map(({ node }) => node.host))];
  if (kept === undefined || lost === undefined) throw new Error("the shards are not on two workers");
  const keysOn = (host: string) => keysWhere((key) => shardOf(placed, key).node.host === host);
  const loads = ways.map(({ part, what, station }) => {
    const target = oncewardTarget(station.client.calls, database);
    return {
      part,
      what,
      kept: new FreshClaims(target, violations, keysOn(kept)).claim,
      lost: patient(new FreshClaims(target, violations, keysOn(lost)).claim, signal),
    };
  });
  const rates = async () => {
    const measured = new Map<string, number>();
    for (const { part, kept, lost } of loads) {
      const ended = new AbortController();
      const others = Array.from({ length: CALLERS / 2 }, () => repeat(lost, ended.signal));
      const { alone } = await alternate({ alone: kept }, { ...pace, callers: CALLERS / 2 }, signal);
      ended.abort();
      await Promise.all(others);
      measured.set(part, alone.perSecond);
    }
    return measured;
  };
  const before = await rates();
  killWorker(lost);
  const during = await rates();
  return loads.map(({ part, what }) => {
    const [wholeRate = 0, awayRate = 0] = [before.get(part), during.get(part)];
    return {
      figure: "P17",
      part: `${part}, a worker down`,
      what: `claims/s of the other worker's keys while a worker is down ÷ before, ${what}, ${CALLERS} callers`,
      value: awayRate / wholeRate,
      unit: "×",
      raw: { "down /s": awayRate, "before /s": wholeRate },
    };
  });
}

/** Returns a source of new keys that match. */
function keysWhere(matches: (key: string) => boolean): () => string {
  const next = freshKeys();
  return () => {
    for (;;) {
      const key = next();
      if (matches(key)) return key;
    }
  };
}

/** Returns a step that waits for as long as a refusal says. */
function patient(step: Step, signal: AbortSignal): Step {
  return async () => {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof OncewardError && error.reason === "DATABASE_UNAVAILABLE")) throw error;
      await delay(error.retryDelayMs ?? 0, undefined, { signal });
    }
  };
}

async function repeat(step: Step, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) await step();
}
