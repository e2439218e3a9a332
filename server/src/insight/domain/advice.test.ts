import { describe, expect, test } from "vitest";
import { latenessBucket } from "../../admin/usage/lateness.ts";
import { type AdviceOptions, adviseRetention, type Candidate, latenessOf } from "./advice.ts";
import type { ClaimsOfDay, LateOfDay, Observations } from "./observations.ts";

const DAY_MS = 86_400_000;
const DAY_S = 86_400;
const OPTIONS: AdviceOptions = {
  retentionS: DAY_S,
  minRetentionS: 60,
  maxRetentionS: 400 * DAY_S,
  targetShare: 1e-3,
};

function claimsOf(day: number, fields: Partial<ClaimsOfDay> = {}): ClaimsOfDay {
  return { dayMs: day * DAY_MS, retentionS: DAY_S, claims: 1000, firstClaims: 900, repeats: [], ...fields };
}

/** 30 days of 1000 claims. */
function observed(fields: Partial<Observations> = {}, days = 30): Observations {
  return {
    nowMs: days * DAY_MS,
    sinceMs: 0,
    sampledSinceMs: DAY_MS,
    shift: 0,
    claims: Array.from({ length: days }, (_, day) => claimsOf(day)),
    late: [],
    ...fields,
  };
}

function lateOf(day: number, latenessS: number, repeats: number, shift = 0): LateOfDay {
  const count = { bucket: latenessBucket(latenessS * 1000), repeats, squares: repeats };
  return { dayMs: day * DAY_MS, retentionS: DAY_S, shift, repeats: [count] };
}

function candidate(observations: Observations, retentionS: number, options = OPTIONS): Candidate {
  const found = adviseRetention(observations, options).candidates.find(
    (each) => each.retentionS === retentionS,
  );
  if (found === undefined) throw new Error(`${retentionS} s is not a candidate`);
  return found;
}

function late(observations: Observations, retentionS: number) {
  const { evidence } = candidate(observations, retentionS);
  if (evidence.kind !== "late") throw new Error("the data was insufficient");
  return evidence.late;
}

describe("candidates", () => {
  test("are the same whichever retention is in force, within the bounds, with their records", () => {
    const bounds = { ...OPTIONS, maxRetentionS: 3 * DAY_S };
    const of = (retentionS: number) => adviseRetention(observed(), { ...bounds, retentionS }).candidates;
    expect(of(DAY_S).map(({ retentionS }) => retentionS / 3600)).toEqual([
      ...[5 / 60, 0.25, 0.5, 1, 6, 12, 24, 48, 72],
    ]);
    expect(of(DAY_S)).toEqual(of(60 * 60));
    expect(of(90).map(({ retentionS }) => retentionS)).toContain(90);
    // 900 operations a day.
    expect(of(DAY_S).map(({ rows }) => Math.round(rows ?? 0))).toEqual([
      3, 9, 19, 38, 225, 450, 900, 1800, 2700,
    ]);
  });

  test("contain the retention in force also if it is beyond bounds that were set later", () => {
    const { candidates } = adviseRetention(observed(), { ...OPTIONS, maxRetentionS: 3600 });
    expect(candidates.at(-1)?.retentionS).toBe(DAY_S);
  });
});

describe("late repeats", () => {
  test("of a shorter retention are those that were recognised later, known to a bucket", () => {
    const repeats = [
      { bucket: latenessBucket(3_600_000), repeats: 5 },
      { bucket: latenessBucket(8 * 3_600_000), repeats: 3 },
    ];
    const observations = observed({
      claims: Array.from({ length: 30 }, (_, day) => claimsOf(day, { repeats: day === 3 ? repeats : [] })),
    });
    expect(late(observations, 6 * 3600)).toMatchObject({
      perMonth: 3,
      perMonthInterval: { low: 3, high: 3 },
      daysWithLate: 1,
      daysObserved: 30,
      claims: 30_000,
    });
    // The five are in the bucket that an hour divides.
    expect(late(observations, 3600)).toMatchObject({ perMonth: 8, perMonthInterval: { low: 3, high: 8 } });
    expect(late(observations, DAY_S)).toMatchObject({ perMonth: 0, perMonthInterval: { low: 0, high: 0 } });
  });

  test("that were recognised under a shorter retention are not late under a longer one", () => {
    const repeats = [{ bucket: latenessBucket(2 * DAY_MS), repeats: 5 }];
    const observations = observed({
      claims: Array.from({ length: 30 }, (_, day) => claimsOf(day, { retentionS: DAY_S, repeats })),
    });
    expect(late(observations, DAY_S).perMonth).toBe(0);
    expect(late(observations, DAY_S / 2).perMonth).toBe(150);
  });

  test("that were all seen are counted, and sampled ones have the interval of their sample", () => {
    const exact = late(observed({ late: [lateOf(5, 2 * DAY_S, 10)] }), DAY_S);
    expect(exact).toMatchObject({ perMonth: 10, perMonthInterval: { low: 10, high: 10 } });
    const sampled = late(observed({ shift: 3, late: [lateOf(5, 2 * DAY_S, 10, 3)] }), DAY_S);
    expect(sampled.perMonth).toBe(80);
    // Garwood's limits of 10 events, times 8.
    expect(sampled.perMonthInterval.low).toBeCloseTo(8 * 4.7954, 2);
    expect(sampled.perMonthInterval.high).toBeCloseTo(8 * 18.3904, 2);
  });

  test("that a sample does not show are bounded", () => {
    const { perMonth, perMonthInterval } = late(observed({ shift: 3 }), DAY_S);
    expect([perMonth, perMonthInterval.low]).toEqual([0, 0]);
    expect(perMonthInterval.high).toBeCloseTo(8 * 3.6889, 2);
  });

  test("of a longer retention count from when keys of that age are sampled", () => {
    const observations = observed({ late: [lateOf(2, 2.5 * DAY_S, 7), lateOf(20, 2.5 * DAY_S, 1)] });
    expect(late(observations, 2 * DAY_S)).toMatchObject({ daysObserved: 28, perMonth: (8 * 30) / 28 });
    expect(late(observations, 3 * DAY_S)).toMatchObject({ daysObserved: 27, perMonth: 0 });
  });

  test("in one day widen the bound of the long term, although they do not widen the interval", () => {
    const steady = late(
      observed({ late: Array.from({ length: 30 }, (_, day) => lateOf(day, 2 * DAY_S, 1)) }),
      DAY_S,
    );
    const redrive = late(observed({ late: [lateOf(9, 2 * DAY_S, 30)] }), DAY_S);
    expect([steady.perMonth, redrive.perMonth]).toEqual([30, 30]);
    expect([steady.daysWithLate, redrive.daysWithLate]).toEqual([30, 1]);
    expect(redrive.shareBound).toBeGreaterThan(3 * steady.shareBound);
  });
});

describe("the verdict", () => {
  const verdict = (observations: Observations, options: Partial<AdviceOptions> = {}) =>
    adviseRetention(observations, { ...OPTIONS, ...options }).verdict;
  const days = (count: number, fields: Partial<ClaimsOfDay> = {}) =>
    Array.from({ length: count }, (_, day) => claimsOf(day, fields));
  const at8h = [{ bucket: latenessBucket(8 * 3_600_000), repeats: 20 }];

  test("advises one step more than is enough, and never less than an hour", () => {
    // 12 h would be enough.
    expect(verdict(observed({ claims: days(30, { repeats: at8h }) }))).toEqual({ kind: "enough" });
    const long = days(30, { repeats: at8h, retentionS: 3 * DAY_S });
    expect(verdict(observed({ claims: long }), { retentionS: 3 * DAY_S })).toEqual({
      kind: "longerThanNeeded",
      advisedS: DAY_S,
    });
    expect(verdict(observed())).toEqual({ kind: "longerThanNeeded", advisedS: 3600 });
  });

  test("shortens only after four weeks, and twice the shorter retention", () => {
    expect(verdict(observed({}, 27))).toEqual({ kind: "enough" });
    const at10d = [{ bucket: latenessBucket(10 * DAY_MS), repeats: 20 }];
    const of = (count: number) => {
      const claims = days(count, { repeats: at10d, retentionS: 90 * DAY_S });
      return verdict(observed({ claims }, count), { retentionS: 90 * DAY_S });
    };
    expect(of(50)).toEqual({ kind: "enough" });
    // 30 days are one step more than 14, and 60 and 90 days were seen for long enough.
    expect(of(180)).toEqual({ kind: "longerThanNeeded", advisedS: 30 * DAY_S });
  });

  test("is too short if more repeats were late than the target accepts", () => {
    const late = Array.from({ length: 10 }, (_, day) => lateOf(10 + day, 2.5 * DAY_S, 6));
    expect(verdict(observed({ late }))).toEqual({ kind: "tooShort", advisedS: 3 * DAY_S });
    expect(verdict(observed({ late }), { maxRetentionS: 2 * DAY_S })).toEqual({
      kind: "tooShort",
      advisedS: undefined,
    });
    expect(verdict(observed({ late }), { targetShare: 0.1 })).toMatchObject({ kind: "longerThanNeeded" });
  });

  test("advises the fewest late repeats, or what lasts beyond the late ones that were seen", () => {
    const fewer = [lateOf(20, 1.5 * DAY_S, 90), lateOf(21, 300 * DAY_S, 10)];
    expect(verdict(observed({ late: fewer }), { maxRetentionS: 2 * DAY_S })).toEqual({
      kind: "tooShort",
      advisedS: 2 * DAY_S,
    });
    const unknown = [lateOf(9, 30 * DAY_S, 90)];
    expect(verdict(observed({ late: unknown }, 10))).toEqual({ kind: "tooShort", advisedS: 60 * DAY_S });
    const short = { maxRetentionS: 14 * DAY_S };
    expect(verdict(observed({ late: unknown }, 10), short)).toEqual({
      kind: "tooShort",
      advisedS: undefined,
    });
  });

  test("needs claims to show that a retention is long enough, as order statistics need them", () => {
    // At most one in 10,000 with 95 %: 29,956 observations.
    expect(verdict(observed(), { targetShare: 1e-4, retentionS: 3600 })).toEqual({ kind: "enough" });
    expect(verdict(observed({}, 29), { targetShare: 1e-4 })).toEqual({ kind: "noneLate" });
    // One key in four is observed.
    expect(verdict(observed({ shift: 2 }), { targetShare: 1e-4 })).toEqual({ kind: "noneLate" });
    expect(verdict(observed({ late: [lateOf(9, 2 * DAY_S, 1)] }), { targetShare: 1e-4 })).toEqual({
      kind: "unproven",
    });
  });

  test("is unproven for a week, and absent without a claim", () => {
    expect(verdict(observed({}, 4))).toEqual({ kind: "unproven" });
    expect(candidate(observed({}, 4), DAY_S).evidence).toMatchObject({ missing: { missingDays: 3 } });
    expect(candidate(observed({}, 8), 2 * DAY_S).evidence).toMatchObject({
      kind: "insufficient",
      missing: { missingDays: 1 },
    });
    expect(candidate(observed({ sampledSinceMs: undefined }), 2 * DAY_S).evidence).toMatchObject({
      missing: { missingDays: 7 },
    });
    const nothing = { sinceMs: undefined, sampledSinceMs: undefined, claims: [] };
    expect(verdict(observed(nothing))).toEqual({ kind: "noClaims" });
  });
});

test("the lateness has recognised repeats, and late ones for as many as they stand for", () => {
  const repeats = [{ bucket: latenessBucket(3_600_000), repeats: 2 }];
  const claims = [claimsOf(0, { repeats }), claimsOf(1, { repeats, retentionS: 2 * DAY_S })];
  const lateness = latenessOf(observed({ claims, late: [lateOf(5, 2 * DAY_S, 10, 3)] }));
  expect([...lateness]).toEqual([
    [latenessBucket(3_600_000), 4],
    [latenessBucket(2 * DAY_MS), 80],
  ]);
});
