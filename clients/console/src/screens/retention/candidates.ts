import type { Advice, Evidence } from "@onceward/words/retention-advice";

/** A retention that a person considers: a candidate, or one between two of them. */
export interface Proposal {
  readonly retentionMs: number;
  readonly records: number;
  readonly bytes: number;
  readonly evidence: Evidence | undefined;
  /** Which candidate the evidence is of; a longer retention has at most as many late duplicates as a shorter one. */
  readonly evidenceOfMs: number;
}

/**
 * Returns what is known about a retention. Between two candidates, the evidence of the shorter one bounds it; the
 * cost grows with the time, because records come at a steady rate.
 */
export function proposalOf({ candidates }: Advice, retentionMs: number): Proposal | undefined {
  const [shortest] = candidates;
  if (shortest === undefined) return undefined;
  const below = candidates.findLast((candidate) => candidate.retentionMs <= retentionMs);
  const { records, bytes, retentionMs: ms } = below ?? shortest;
  const factor = ms === 0 ? 0 : retentionMs / ms;
  return {
    retentionMs,
    records: records * factor,
    bytes: bytes * factor,
    evidence: below?.evidence,
    evidenceOfMs: below?.retentionMs ?? 0,
  };
}
