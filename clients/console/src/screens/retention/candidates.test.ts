import type { Advice, Candidate, Evidence } from "@onceward/words/retention-advice";
import { describe, expect, it } from "vitest";
import { HOUR_MS } from "../../format/duration.ts";
import { proposalOf } from "./candidates.ts";

function late(perMonth: number, high = perMonth): Evidence {
  const counts = { daysWithLate: 1, daysObserved: 28, claims: 2_512, maxPerMillion: 45_621 };
  return { kind: "late", perMonth, low: 0, high, ...counts };
}

function candidate(hours: number, evidence: Evidence): Candidate {
  return { retentionMs: hours * HOUR_MS, evidence, records: hours * 10, bytes: hours * 1_000 };
}

function advice(hours: number, candidates: readonly Candidate[]): Advice {
  const observedSince = new Date("2026-10-26T18:00:00Z");
  const verdict = { verdict: "too short", advised: undefined, lateness: [] } as const;
  return { retentionMs: hours * HOUR_MS, observedSince, target: 1, candidates, ...verdict };
}

describe("a proposed retention", () => {
  const given = advice(6, [candidate(6, late(61)), candidate(24, late(5))]);

  it("between two candidates has the evidence of the shorter one, and the cost of its time", () => {
    expect(proposalOf(given, 12 * HOUR_MS)).toMatchObject({
      evidenceOfMs: 6 * HOUR_MS,
      evidence: { perMonth: 61 },
      records: 120,
      bytes: 12_000,
    });
  });

  it("shorter than all candidates has none", () => {
    expect(proposalOf(given, HOUR_MS)).toMatchObject({ evidence: undefined, records: 10 });
  });
});
