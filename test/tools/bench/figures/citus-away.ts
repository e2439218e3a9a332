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

/**
 * Measures claims of one worker's keys while the other worker is down and as many callers ask for its keys, ÷ before. Callers
 * that are refused wait as they are told.
 *
 * @param killWorker ends the server that holds the shards on the node of this host.
 */
export async function measureAwayWorker(
  { violations, pace, signal, progress }: Bench,
  database: BenchDatabase,
  station: Station,
  killWorker: (host: string) => void,
): Promise<Finding> {
  progress(`claims on Citus while a worker is down, ${CALLERS} callers`);
  const placed =
    (await readShardMap({ run: ({ text }, values) => database.query<never>(text, values) })) ?? [];
  const [kept, lost] = [...new Set(placed.map(({ node }) => node.host))];
  if (kept === undefined || lost === undefined) throw new Error("the shards are not on two workers");
  const keysOn = (host: string) => keysWhere((key) => shardOf(placed, key).node.host === host);
  const target = oncewardTarget(station.client.calls, database);
  const claimKept = new FreshClaims(target, violations, keysOn(kept)).claim;
  const claimLost = patient(new FreshClaims(target, violations, keysOn(lost)).claim, signal);
  const rate = async () => {
    const ended = new AbortController();
    const others = Array.from({ length: CALLERS / 2 }, () => repeat(claimLost, ended.signal));
    const { alone } = await alternate({ alone: claimKept }, { ...pace, callers: CALLERS / 2 }, signal);
    ended.abort();
    await Promise.all(others);
    return alone.perSecond;
  };
  const before = await rate();
  killWorker(lost);
  const during = await rate();
  return {
    figure: "P17",
    part: "a worker down",
    what: `claims/s of the other worker's keys while a worker is down ÷ before, ${CALLERS} callers`,
    value: during / before,
    unit: "×",
    raw: { "down /s": during, "before /s": before },
  };
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
