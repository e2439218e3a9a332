import { describe, expect, it } from "vitest";
import { HOUR_MS } from "./durations.ts";
import type { Advice, Candidate, Evidence, Verdict } from "./retention-advice.ts";
import { describeVerdict, formatLate } from "./verdict-words.ts";

function late(perMonth: number, maxPerMillion = 606): Evidence {
  const counts = { daysWithLate: 1, daysObserved: 28.4, claims: 2_512, maxPerMillion };
  return { kind: "late", perMonth, low: perMonth, high: perMonth, ...counts };
}

const MISSING: Evidence = { kind: "missing", days: 3, claims: 0n };

function advice(
  verdict: Verdict,
  seen: Evidence,
  advised?: readonly [hours: number, evidence: Evidence],
): Advice {
  const candidate = (hours: number, evidence: Evidence): Candidate => {
    return { retentionMs: hours * HOUR_MS, evidence, records: 0, bytes: 0 };
  };
  const [inForce, other] = [candidate(24, seen), advised && candidate(...advised)];
  const candidates = other === undefined ? [inForce] : [inForce, other];
  const observedSince = new Date("2026-10-26T18:00:00Z");
  return {
    retentionMs: 24 * HOUR_MS,
    observedSince,
    target: 1,
    candidates,
    verdict,
    advised: other,
    lateness: [],
  };
}

const TOO_SHORT = "About 1,750 duplicates a month come later, and take effect a second time.";

describe("the words of a verdict", () => {
  it.each([
    [
      advice("too short", late(1_750), [96, late(0)]),
      `${TOO_SHORT} 4d would have caught all of them (28 days observed).`,
    ],
    [
      advice("too short", late(1_750), [72, late(87.5)]),
      `${TOO_SHORT} 72h would have caught about 95% of them (28 days observed).`,
    ],
    [
      advice("too short", late(1_750), [72, MISSING]),
      `${TOO_SHORT} 72h catches all that were seen, and shows whether others come later.`,
    ],
    [
      {
        ...advice("too short", late(1_750), [72, MISSING]),
        lateness: [{ upToMs: 73 * HOUR_MS, repeats: 1 }],
      },
      `${TOO_SHORT} 72h catches more of them, and shows how late the others come.`,
    ],
    [
      advice("too short", late(1_750)),
      `${TOO_SHORT} No longer retention was observed that would have caught all of them.`,
    ],
    [advice("longer than needed", late(0), [6, late(0)]), "6h would be long enough, and keep fewer records."],
    [
      advice("none late", late(0)),
      "No duplicate came later in 28 days. At this volume, at most 1 claim in 1,650 is late.",
    ],
    [advice("none late", late(0, 2_000_000)), "No duplicate came later in 28 days."],
    [advice("unproven", MISSING), "3 more days of traffic show whether it is long enough."],
  ])("name one number and one retention (%#)", (given, words) => {
    expect(describeVerdict(given)).toBe(words);
  });

  it("show an estimate with its interval, unless it is exact", () => {
    expect(formatLate(late(50.3))).toBe("50");
    expect(formatLate({ ...late(50.3), low: 3.2, high: 1_234.5 } as Evidence)).toBe("50 (3.2 – 1,240)");
    expect(formatLate(MISSING)).toBe("not known");
  });
});
