import { adviseRetention, CONFIDENCE } from "../../../server/src/insight/domain/advice.ts";
import { evidenceOf } from "../../../server/src/insight/domain/observations.ts";
import { createRandom } from "../../support/random.ts";
import { type Setting, type Simulated, simulate, type Traffic } from "./traffic.ts";

const HOUR_MS = 3_600_000;
const RETENTION_MS = 24 * HOUR_MS;

/** Samples of different sizes: one is halved twice on the way. */
export const SETTINGS: Readonly<Record<string, Setting>> = {
  "every key": { days: 60, retentionMs: RETENTION_MS, shiftOn: () => 0 },
  "one key in 8": { days: 60, retentionMs: RETENTION_MS, shiftOn: () => 3 },
  "one key in 4, 8, then 16": {
    days: 60,
    retentionMs: RETENTION_MS,
    shiftOn: (day) => 2 + Math.floor(day / 20),
  },
};

/** How often the statements of many runs were true. */
export interface Coverage {
  readonly statements: number;
  /** The share of intervals that contain the number of late repeats. */
  readonly interval: number;
  /** The share of intervals whose upper end is not below the claims that would have been granted again. */
  readonly duplicates: number;
  /** The share of bounds that are not below the long-term share of late repeats. */
  readonly bound: number;
}

interface Statement {
  readonly retentionS: number;
  readonly low: number;
  readonly high: number;
  readonly late: number;
  readonly duplicates: number;
  readonly claims: number;
  readonly shareBound: number;
}

/** Draws a kind of traffic many times, and returns how often what the advice says of it was true. */
export function measureCoverage(traffic: Traffic, setting: Setting, runs: number, seed: number): Coverage {
  const all: Statement[] = [];
  for (let run = 0; run < runs; run++) {
    all.push(...statementsOf(simulate(traffic, setting, createRandom(seed * 1_000_003 + run).next), setting));
  }
  const longTerm = longTermShares(all);
  const share = (holds: (statement: Statement) => boolean) => all.filter(holds).length / all.length;
  return {
    statements: all.length,
    interval: share(({ low, high, late }) => low <= late + TOLERANCE && late <= high + TOLERANCE),
    duplicates: share(({ high, duplicates }) => duplicates <= high + TOLERANCE),
    bound: share(({ shareBound, retentionS }) => shareBound >= (longTerm.get(retentionS) ?? 0)),
  };
}

/** Of sums that were divided and multiplied again. */
const TOLERANCE = 1e-6;

export { CONFIDENCE };

function statementsOf(simulated: Simulated, { retentionMs }: Setting): readonly Statement[] {
  const { observations, repeats } = simulated;
  const retentionS = retentionMs / 1000;
  const bounds = { minRetentionS: 300, maxRetentionS: 30 * 24 * 3600 };
  const { candidates } = adviseRetention(observations, { retentionS, ...bounds, targetShare: 1e-6 });
  return candidates.flatMap(({ retentionS: candidateS, evidence }) => {
    if (evidence.kind !== "late") return [];
    const { perMonthInterval, daysObserved, claims, shareBound } = evidence.late;
    const candidateMs = candidateS * 1000;
    const days = new Set(evidenceOf(observations, candidateS).map(({ dayMs }) => dayMs));
    const isObserved = ({ atMs }: { readonly atMs: number }) => days.has(Math.floor(atMs / DAY_MS) * DAY_MS);
    const late = repeats.filter(({ recognised, latenessMs }) =>
      recognised
        ? candidateS < retentionS && latenessMs > candidateMs
        : candidateS <= retentionS || latenessMs > candidateMs,
    );
    return [
      {
        retentionS: candidateS,
        low: (perMonthInterval.low * daysObserved) / 30,
        high: (perMonthInterval.high * daysObserved) / 30,
        late: late.filter(isObserved).length,
        duplicates: simulated.duplicatesWith(candidateMs).filter(isObserved).length,
        claims,
        shareBound,
      },
    ];
  });
}

const DAY_MS = 86_400_000;

/** Returns the share of late repeats of all runs, by retention: what a single run cannot know. */
function longTermShares(statements: readonly Statement[]): ReadonlyMap<number, number> {
  const byRetention = Map.groupBy(statements, ({ retentionS }) => retentionS);
  return new Map(
    [...byRetention].map(([retentionS, of]) => {
      const late = of.reduce((sum, each) => sum + each.late, 0);
      return [retentionS, late / of.reduce((sum, each) => sum + each.claims, 0)];
    }),
  );
}
