import { heldFrom, LEASE } from "./rows.ts";
import { Contradiction, newWorld, stepsFrom, type World } from "./world.ts";

/** How far a search goes. */
export interface Scope {
  readonly keys: number;
  readonly callers: number;
  readonly crashes: number;
  /** Maximum steps from the beginning. */
  readonly depth: number;
}

/** What a search found. */
export interface Found {
  readonly states: number;
  /** The steps to a contradiction, the last of them in words of the protocol; undefined: there is none. */
  readonly contradiction: readonly string[] | undefined;
}

interface Visited {
  readonly world: World;
  readonly words: string;
  readonly from: Visited | undefined;
}

/** How long expired leases are taken over in each search: as long as a lease is held twice, always, and never. */
const RECLAIM_WITHIN = [2 * LEASE, Number.POSITIVE_INFINITY, 0];

/** Visits every state of a scope, those that are nearest first, under each policy. */
export function searchAll({ keys, callers, crashes, depth }: Scope): Found {
  const seen = new Set<string>();
  let level: Visited[] = RECLAIM_WITHIN.map((minutes) => ({
    world: newWorld(keys, callers, crashes, minutes),
    words: `leases are taken over within ${minutes} minutes`,
    from: undefined,
  }));
  for (let reached = 0; reached < depth && level.length > 0; reached++) {
    const next: Visited[] = [];
    for (const visited of level) {
      try {
        for (const { words, after } of stepsFrom(visited.world)) {
          const name = nameOf(after);
          if (seen.has(name)) continue;
          seen.add(name);
          next.push({ world: after, words, from: visited });
        }
      } catch (error) {
        if (!(error instanceof Contradiction)) throw error;
        return { states: seen.size, contradiction: [...wayTo(visited), error.message] };
      }
    }
    level = next;
  }
  return { states: seen.size, contradiction: undefined };
}

function wayTo(visited: Visited): string[] {
  return [...(visited.from === undefined ? [] : wayTo(visited.from)), visited.words];
}

/**
 * Returns one name for all states that behave alike: times count from now, and what has ended has ended equally. Tokens are
 * compared per key only.
 */
function nameOf({ now, reclaimWithin, rows, callers, tokens, crashesLeft }: World): string {
  const since = (time: number) => Math.max(time - now, -3);
  const names = rows.map((row, key) => {
    const highest = tokens[key] as number;
    const callersTokens = callers.map(({ held }) =>
      held?.key !== key ? "" : held.token === highest ? "newest" : "older",
    );
    const swept = row === undefined ? `swept ${Math.sign(highest - now * 100 - 1)}` : "";
    return [
      swept,
      row && [
        row.state,
        row.attempt > 1,
        row.fingerprint,
        since(row.leaseEnds),
        since(heldFrom(row)),
        since(row.ends),
        row.result,
      ],
      Math.max(highest - now * 100, 0),
      callersTokens,
    ];
  });
  return JSON.stringify([reclaimWithin, names, callers.map(({ call }) => call ?? null), crashesLeft]);
}
