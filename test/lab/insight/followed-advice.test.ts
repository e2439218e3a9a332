import { expect, test } from "vitest";
import { adviseRetention } from "../../../server/src/insight/domain/advice.ts";
import type { Observations } from "../../../server/src/insight/domain/observations.ts";
import { createRandom } from "../../support/random.ts";
import { simulate, TRAFFIC, type Traffic } from "./traffic.ts";

const HOUR_MS = 3_600_000;
const DAYS = 90;
const DAYS_APART = 6;
const STARTS_H = [1, 6, 24, 72, 720];
const BOUNDS = { minRetentionS: 300, maxRetentionS: 400 * 24 * 3600 };

/** What was answered, and then followed. */
interface Followed {
  readonly day: number;
  readonly kind: "tooShort" | "longerThanNeeded";
  readonly fromS: number;
  readonly advisedS: number;
  /** Under the advised retention, no observed duplicate would have been too late. */
  readonly isWhole: boolean;
}

/** Returns each advice that is given and followed, by the day, and again at once after it was followed. */
function follow(traffic: Traffic, startH: number, weight: number, seed: number): readonly Followed[] {
  const changes: { readonly day: number; readonly retentionMs: number }[] = [];
  const retentionOn = (day: number) =>
    changes.findLast((change) => change.day <= day)?.retentionMs ?? startH * HOUR_MS;
  const followed: Followed[] = [];
  for (let day = DAYS_APART; day <= DAYS; day += DAYS_APART) {
    const setting = { days: DAYS, retentionMs: startH * HOUR_MS, retentionOn, shiftOn: () => 0 };
    const { observations } = simulate(traffic, setting, createRandom(seed).next);
    const seen = weighed(untilDay(observations, day), weight);
    for (let asked = 0; asked < 3; asked++) {
      const retentionS = retentionOn(day) / 1000;
      const { verdict, candidates } = adviseRetention(seen, { ...BOUNDS, retentionS, targetShare: 1e-6 });
      if (verdict.advisedS === undefined) break;
      const evidence = candidates.find((candidate) => candidate.retentionS === verdict.advisedS)?.evidence;
      const isWhole = evidence?.kind === "late" && evidence.late.repeats === 0;
      followed.push({ day, kind: verdict.kind, fromS: retentionS, advisedS: verdict.advisedS, isWhole });
      changes.push({ day, retentionMs: verdict.advisedS * 1000 });
    }
  }
  return followed;
}

const DAY_MS = 86_400_000;

function untilDay({ claims, late, ...rest }: Observations, day: number): Observations {
  const isKnown = ({ dayMs }: { readonly dayMs: number }) => dayMs < day * DAY_MS;
  return { ...rest, nowMs: day * DAY_MS, claims: claims.filter(isKnown), late: late.filter(isKnown) };
}

/** A busy namespace, of which each claim of the simulation stands for many. */
function weighed({ claims, late, ...rest }: Observations, weight: number): Observations {
  const times = <Count extends { readonly repeats: number }>(counts: readonly Count[]) =>
    counts.map((count) => ({ ...count, repeats: count.repeats * weight }));
  return {
    ...rest,
    claims: claims.map((day) => ({
      ...day,
      claims: day.claims * weight,
      firstClaims: day.firstClaims * weight,
      repeats: times(day.repeats),
    })),
    late: late.map((day) => ({ ...day, repeats: times(day.repeats) })),
  };
}

const HISTORIES = Object.entries(TRAFFIC).flatMap(([name, traffic]) =>
  STARTS_H.map((startH, index) => ({ name, traffic, startH, weight: index % 2 === 0 ? 1000 : 1 })),
);

const kinds = new Set<Followed["kind"]>();

test.each(HISTORIES)(
  "$name from $startH h, each claim $weight times: no advice is contradicted",
  (history) => {
    const { traffic, startH, weight } = history;
    const followed = follow(traffic, startH, weight, startH + weight);
    for (const [index, advice] of followed.entries()) {
      kinds.add(advice.kind);
      const next = followed[index + 1];
      if (next === undefined) continue;
      // Longer ones follow each other while it is not known how late duplicates come. Never shorter again, nor shorter and then longer.
      expect(next, JSON.stringify(followed)).toMatchObject({ kind: advice.kind });
      if (next.day === advice.day) expect(advice.isWhole, JSON.stringify(followed)).toBe(false);
    }
  },
);

test("the histories above were advised to lengthen, and to shorten", () => {
  expect(kinds).toEqual(new Set(["tooShort", "longerThanNeeded"]));
});
