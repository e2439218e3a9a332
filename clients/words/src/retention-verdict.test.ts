import { describe, expect, it } from "vitest";
import type { Advice, Candidate, Evidence, Recommendation } from "./retention-advice.ts";
import { advisedMs, judge, targetOfTraffic } from "./retention-verdict.ts";
import { describeVerdict, VERDICT_NAMES } from "./verdict-words.ts";

const HOUR_MS = 3_600_000;
const NONE_KNOWN: Recommendation & { kind: "missing" } = { kind: "missing", days: 0, claims: 2_993_565n };

function late(perMonth: number, high = perMonth): Evidence {
  const counts = { daysWithLate: 1, daysObserved: 28, claims: 2_512, maxPerMillion: 45_621 };
  return { kind: "late", perMonth, low: 0, high, ...counts };
}

function candidate(hours: number, evidence: Evidence): Candidate {
  return { retentionMs: hours * HOUR_MS, evidence, records: hours * 10, bytes: hours * 1_000 };
}

function advice(hours: number, candidates: readonly Candidate[], recommendation: Recommendation): Advice {
  const observedSince = new Date("2026-10-26T18:00:00Z");
  return { retentionMs: hours * HOUR_MS, observedSince, target: 1, candidates, recommendation };
}

describe("the verdict on a retention", () => {
  it("is 'too short' once more late duplicates were seen than the target accepts", () => {
    const candidates = [candidate(6, late(61)), candidate(24, late(60.5)), candidate(72, late(0))];
    expect(judge(advice(6, candidates, NONE_KNOWN))).toMatchObject({
      kind: "too short",
      perMonth: 61,
      better: { retentionMs: 72 * HOUR_MS },
    });
    // Where each longer one has late duplicates, too, the fewest are better than today's.
    const some = judge(
      advice(6, [candidate(6, late(60)), candidate(24, late(3)), candidate(72, late(3))], NONE_KNOWN),
    );
    expect(some).toMatchObject({ kind: "too short", better: { retentionMs: 24 * HOUR_MS } });
    expect(describeVerdict(some)).toContain("24h would have caught about 95% of them");
    const missing = candidate(24, { kind: "missing", days: 3, claims: 0n });
    const next = judge(advice(6, [candidate(6, late(61)), missing], { kind: "none" }));
    expect(describeVerdict(next)).toMatch(
      /How late is not known yet: 24h catches more of them, and shows it\.$/,
    );
    expect(judge(advice(6, [candidate(6, late(61))], { kind: "none" }))).toMatchObject({ better: undefined });
    // An estimate of more than today's is not a reason for a longer one.
    const more = [candidate(6, late(50)), candidate(12, late(54))];
    expect(judge(advice(6, more, { kind: "none" }))).toMatchObject({ better: undefined });
    expect(judge(advice(6, [...more, missing], { kind: "none" }))).toMatchObject({ better: missing });
  });

  it("accepts late duplicates up to the target", () => {
    const given = { ...advice(6, [candidate(6, late(61))], NONE_KNOWN), target: 100_000 };
    expect(judge(given)).toMatchObject({ kind: "unproven" });
  });

  it("follows the recommendation where no late duplicate was seen", () => {
    const candidates = [candidate(6, late(0)), candidate(24, late(0))];
    const recommended = (hours: number): Recommendation => ({
      kind: "retention",
      retentionMs: hours * HOUR_MS,
    });
    expect(judge(advice(24, candidates, recommended(6)))).toEqual({
      kind: "longer than needed",
      enoughMs: 6 * HOUR_MS,
    });
    expect(judge(advice(24, candidates, recommended(24)))).toEqual({ kind: "enough" });
    expect(judge(advice(6, candidates, recommended(24)))).toMatchObject({ kind: "none seen" });
    expect(judge({ ...advice(6, [], NONE_KNOWN), observedSince: undefined })).toEqual({ kind: "no claims" });
  });
});

describe("the target", () => {
  const seen = (maxPerMillion: number, perMonth = 0): Candidate =>
    candidate(24, { ...late(perMonth), maxPerMillion } as Evidence);

  it("follows the traffic: the strictest that it can show, and never more than one in a thousand", () => {
    expect(targetOfTraffic(advice(24, [seen(45)], NONE_KNOWN))).toBe(100);
    expect(targetOfTraffic(advice(24, [seen(1_000)], NONE_KNOWN))).toBe(1_000);
    expect(targetOfTraffic(advice(24, [seen(45_621)], NONE_KNOWN))).toBeUndefined();
    // The default target is shown already, duplicates are late, or days are missing.
    expect(targetOfTraffic(advice(24, [seen(0.5)], NONE_KNOWN))).toBeUndefined();
    expect(targetOfTraffic(advice(24, [seen(45, 3)], NONE_KNOWN))).toBeUndefined();
    expect(targetOfTraffic(advice(24, [seen(45)], { ...NONE_KNOWN, days: 2 }))).toBeUndefined();
  });
});

describe("the words of a verdict", () => {
  const candidates = [candidate(24, late(1_750)), candidate(96, late(0))];

  it("are one sentence with one number, and the retention that would have been enough", () => {
    const verdict = judge(advice(24, candidates, NONE_KNOWN));
    expect(VERDICT_NAMES[verdict.kind]).toBe("Too short");
    expect(describeVerdict(verdict)).toBe(
      "About 1,750 duplicates a month come later, and take effect a second time. 4d would have caught all of them (28 days observed).",
    );
    expect(advisedMs(verdict)).toBe(96 * HOUR_MS);
  });

  it("call it a success when nothing was late, and say what the traffic is enough for", () => {
    const verdict = judge(advice(96, candidates, NONE_KNOWN));
    expect(VERDICT_NAMES[verdict.kind]).toBe("None late");
    expect(describeVerdict(verdict)).toBe(
      "No duplicate came later in 28 days. By this traffic, fewer than 1 in 21 claims has one.",
    );
    expect(describeVerdict({ kind: "none seen", daysObserved: 1.4, maxPerMillion: 2_000_000 })).toBe(
      "No duplicate came later in 1 day.",
    );
    expect(describeVerdict({ kind: "unproven", days: 3 })).toBe(
      "3 more days of traffic show whether it is long enough.",
    );
  });
});
