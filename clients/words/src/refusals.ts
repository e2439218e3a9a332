import type { RefusedNow, UsageNow } from "@onceward/client/proto";
import { formatSize } from "./bytes.ts";
import { formatCount, formatRate } from "./words.ts";

/** The counters of calls that quotas refused. They are not among the claims. */
export const REFUSALS = [
  "refusedByRate",
  "refusedByConcurrency",
  "refusedByRecords",
  "refusedByBytes",
] as const;

const UNCLAIMED_REFUSALS = [...REFUSALS, "lateKeysRefused"] as const;
type UnclaimedRefusal = (typeof UNCLAIMED_REFUSALS)[number];

/** The counters of all refused calls, of a minute or an hour. */
export const ALL_REFUSALS = [...UNCLAIMED_REFUSALS, "mismatches", "fenced"] as const;

/** The counter of a cause; "wouldBeRefused": of calls that were answered. */
export type RefusalCounter = (typeof ALL_REFUSALS)[number] | "wouldBeRefused";

/** Counts by cause, of a minute or an hour. */
export type RefusalCounts = Readonly<Record<RefusalCounter, bigint | number>>;

/** Why calls are refused. */
interface Cause {
  /** As in "12 refused by the rate limit". */
  readonly phrase: string;
  readonly remedy: string;
  /** The field of a namespace's policy that the remedy names. */
  readonly field?: "keyRetention" | "resultRetention" | "defaultLease";
}

const LATER = "Ask the operator for a higher limit";

/** Why calls are refused, and what to do, by their counter. */
export const CAUSES: Readonly<Record<RefusalCounter, Cause>> = {
  refusedByRate: {
    phrase: "refused by the rate limit",
    remedy: `${LATER}, or send fewer duplicates.`,
  },
  refusedByConcurrency: {
    phrase: "refused by the limit of calls at once",
    remedy: `${LATER}, or use fewer calls that wait.`,
  },
  refusedByRecords: {
    phrase: "refused because no room for records is left",
    remedy: `${LATER}, or shorten a key retention that is longer than needed: a duplicate that comes later runs again.`,
    field: "keyRetention",
  },
  refusedByBytes: {
    phrase: "refused because no room for results is left",
    remedy: `${LATER}, store smaller results, or shorten the result retention: later duplicates get no result.`,
    field: "resultRetention",
  },
  lateKeysRefused: {
    phrase: "refused because the key is too old",
    remedy: "Find out whether the effects happened; a longer key retention accepts later duplicates.",
    field: "keyRetention",
  },
  mismatches: {
    phrase: "refused because the key belongs to another request",
    remedy: "Find the caller that uses one key for two requests.",
  },
  fenced: {
    phrase: "refused because a newer claim has the key",
    remedy: "The worker came back after its lease: give it a longer lease, or extend it.",
    field: "defaultLease",
  },
  wouldBeRefused: { phrase: "beyond a quota that only counts", remedy: LATER },
};

/** The counters of the reasons that have one. */
const COUNTERS: Readonly<Record<string, RefusalCounter>> = {
  QUOTA_RATE: "refusedByRate",
  QUOTA_CONCURRENCY: "refusedByConcurrency",
  QUOTA_RECORDS: "refusedByRecords",
  QUOTA_BYTES: "refusedByBytes",
  KEY_TOO_OLD: "lateKeysRefused",
  FINGERPRINT_MISMATCH: "mismatches",
  CLAIM_SUPERSEDED: "fenced",
};

/** Returns the cause of what was refused; a reason without a counter is named as callers see it. */
export function causeOf({ reason }: Pick<RefusedNow, "reason">): Cause {
  const counter = COUNTERS[reason];
  return counter === undefined
    ? { phrase: `refused with ${reason}`, remedy: "The caller's error says what to change." }
    : CAUSES[counter];
}

/** Returns the limit that refused operations were beyond, such as "8 a second"; "" without one. */
export function limitWords({ reason, limit }: Pick<RefusedNow, "reason" | "limit">): string {
  if (limit === undefined) return "";
  switch (COUNTERS[reason]) {
    case "refusedByRate":
      return `${formatCount(limit)} a second`;
    case "refusedByConcurrency":
      return `${formatCount(limit)} at once`;
    case "refusedByBytes":
      return formatSize(limit);
    default:
      return `${formatCount(limit)} records`;
  }
}

/** Returns who made refused operations: the label of the API key, or else its id or the token's subject. */
export function callerWords({ label, actor }: Pick<RefusedNow, "label" | "actor">): string {
  return label || actor;
}

/** Returns the number of refused calls, without those that were answered. */
export function refusedCount(counts: RefusalCounts): number {
  return ALL_REFUSALS.reduce((sum, name) => sum + Number(counts[name]), 0);
}

/** Returns the number of refused calls that are not among the claims: by a quota, or because the key was too old. */
export function refusedBesideClaims(counts: Pick<RefusalCounts, UnclaimedRefusal>): number {
  return UNCLAIMED_REFUSALS.reduce((sum, name) => sum + Number(counts[name]), 0);
}

/** Returns a phrase for each cause that has a count, such as "12 refused by the rate limit". */
export function refusalWords(counts: RefusalCounts): readonly string[] {
  return [...ALL_REFUSALS, "wouldBeRefused" as const]
    .filter((name) => counts[name] > 0)
    .map((name) => `${formatCount(counts[name])} ${CAUSES[name].phrase}`);
}

/** Returns the rates of a minute, such as "4.6 claims a second, and 6 refused by a quota". */
export function rateWords({ claimsPerSecond, refusedPerSecond }: UsageNow): string {
  const claims = `${formatRate(claimsPerSecond)} claims a second`;
  return refusedPerSecond === 0
    ? claims
    : `${claims}, and ${formatRate(refusedPerSecond)} refused by a quota`;
}
