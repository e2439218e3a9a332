import { judgeKeys } from "../../../server/src/insight/domain/key-quality.ts";
import { createRandom } from "../../support/random.ts";
import { DAY_MS, drawClaims, KeyCounts, type KeyTraffic } from "./key-traffic.ts";

/** A month, with a report at the end of each day. */
const DAYS = 30;

/** How many months, of many, had a report that suspects something. */
export interface Alarms {
  readonly months: number;
  /** By kind of suspicion. */
  readonly suspected: ReadonlyMap<string, number>;
  /** Months with any suspicion. */
  readonly any: number;
  /** The mean number of days until the first suspicion of each kind. */
  readonly daysUntil: ReadonlyMap<string, number>;
}

/** Draws months of a kind of traffic, and returns in how many of them a daily report suspects something. */
export function measureAlarms(traffic: KeyTraffic, months: number, seed: number): Alarms {
  const suspected = new Map<string, number>();
  const days = new Map<string, number>();
  let any = 0;
  for (let month = 0; month < months; month++) {
    const first = firstSuspicions(traffic, createRandom(seed * 1_000_003 + month).next);
    if (first.size > 0) any++;
    for (const [kind, day] of first) {
      suspected.set(kind, (suspected.get(kind) ?? 0) + 1);
      days.set(kind, (days.get(kind) ?? 0) + day);
    }
  }
  const daysUntil = new Map([...days].map(([kind, sum]) => [kind, sum / (suspected.get(kind) ?? 1)]));
  return { months, suspected, any, daysUntil };
}

function firstSuspicions(traffic: KeyTraffic, random: () => number): ReadonlyMap<string, number> {
  const claims = drawClaims(traffic, DAYS, random);
  const counts = new KeyCounts();
  const first = new Map<string, number>();
  const startMs = Math.floor((claims[0]?.atMs ?? 0) / DAY_MS) * DAY_MS;
  let next = 0;
  for (let day = 1; day <= DAYS; day++) {
    for (; next < claims.length; next++) {
      const claim = claims[next];
      if (claim === undefined || claim.atMs >= startMs + day * DAY_MS) break;
      counts.add(claim);
    }
    for (const { kind, verdict } of judgeKeys(counts.observations(day))) {
      if (verdict === "suspected" && !first.has(kind)) first.set(kind, day);
    }
  }
  return first;
}
