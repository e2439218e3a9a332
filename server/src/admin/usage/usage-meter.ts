import type { QuotaCause } from "../../access/refusals.ts";
import { NAMESPACE_PATTERN } from "../../domain/limits.ts";
import type { CountedClaim, OperationHooks, UsedNamespace } from "../../records/after-operation.ts";
import { beginsOperation, type ClaimOutcome } from "../../records/record.ts";
import type { UsageCount } from "./add-usage.ts";
import { latenessBucket } from "./lateness.ts";
import { countersBy, type UsageCounter } from "./usage.ts";

/** Counts the use of namespaces. Its counts are stored every few seconds. */
export type UsageMeter = ReturnType<typeof createUsageMeter>;

type RetentionTally = ReturnType<typeof startRetention>;

function startRetention(retentionS: number) {
  const repeats = new Map<number, number>();
  const late = new Map<number, number>();
  return { retentionS, claims: 0, firstClaims: 0, repeats, late };
}

/** The counters of refusals by quotas that limit calls of IdempotencyService. */
const REFUSED: Partial<Record<QuotaCause, UsageCounter>> = {
  rate: "refused_by_rate",
  concurrency: "refused_by_concurrency",
  records: "refused_by_records",
  bytes: "refused_by_bytes",
};

/**
 * Namespaces that get counts of their own between two flushes although none of their claims was answered: as many as tenants
 * have labels of metrics. Refused calls cost a caller nothing, so that their names would be many rows.
 */
const MAX_REFUSED_NAMESPACES = 100;

/** Buckets of how long claims took: the first is up to LATENCY_MS, each further one twice as long, the last one without a limit. */
export const LATENCY_BUCKETS = 17;
export const LATENCY_MS = 0.25;

/** Returns the bucket of a duration. */
export function latencyBucket(durationMs: number): number {
  const bucket = Math.ceil(Math.log2(durationMs / LATENCY_MS));
  return Math.min(Math.max(bucket, 0), LATENCY_BUCKETS - 1);
}

/** More changes of a policy between two flushes count under the last one. */
const MAX_RETENTIONS = 4;

const ZEROS = countersBy(() => 0);

class Tally implements UsageCount {
  readonly tenantId: number;
  readonly namespace: string;
  readonly counters = { ...ZEROS };
  readonly latency = new Array<number>(LATENCY_BUCKETS).fill(0);
  readonly retentions: RetentionTally[] = [];
  /** The one that counted last. */
  #retention: RetentionTally | undefined;

  constructor({ tenantId, namespace }: UsedNamespace) {
    this.tenantId = tenantId;
    this.namespace = namespace;
  }

  claimed(
    outcome: ClaimOutcome,
    { retentionInForceS: retentionS, keyCreatedAtMs }: CountedClaim,
    atMs: number,
  ): void {
    const { counters } = this;
    if (keyCreatedAtMs === undefined) counters.without_key_time++;
    let retention = this.#retention;
    if (retention?.retentionS !== retentionS) retention = this.#changeRetention(retentionS);
    counters.claims++;
    retention.claims++;
    switch (outcome.kind) {
      case "claimed":
      case "recorded":
        counters.granted++;
        if (beginsOperation(outcome)) {
          retention.firstClaims++;
          if (outcome.firstClaimedAtMs >= (keyCreatedAtMs ?? Number.NaN) + retentionS * 1000)
            counters.late_keys_granted++;
          const { endedFirstClaimedAtMs } = outcome;
          if (endedFirstClaimedAtMs !== undefined)
            increment(retention.late, latenessBucket(outcome.firstClaimedAtMs - endedFirstClaimedAtMs));
          return;
        }
        if (outcome.attempt === 1) return;
        counters.reclaims++;
        break;
      case "completed":
        counters.replayed++;
        break;
      case "inProgress":
        counters.in_progress++;
        break;
      case "ambiguous":
        counters.ambiguous++;
        break;
    }
    increment(retention.repeats, latenessBucket(atMs - outcome.firstClaimedAtMs));
  }

  #changeRetention(retentionS: number): RetentionTally {
    const { retentions } = this;
    const known = retentions.find((each) => each.retentionS === retentionS);
    const last = retentions.length === MAX_RETENTIONS ? retentions.at(-1) : undefined;
    const retention = known ?? last ?? startRetention(retentionS);
    if (!retentions.includes(retention)) retentions.push(retention);
    this.#retention = retention;
    return retention;
  }
}

function increment(counts: Map<number, number>, bucket: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
}

/**
 * Maximum namespaces with counts, about 70 MiB: far more than are used between two flushes. It is reached if
 * flushes fail for long. Then counts of further namespaces are dropped.
 */
const MAX_NAMESPACES = 100_000;

/** @param onDropped is called for each count that is dropped. */
export function createUsageMeter(onDropped: () => void, maxNamespaces = MAX_NAMESPACES) {
  const tenants = new Map<number, Map<string, Tally>>();
  let size = 0;
  let refusedNamespaces = 0;

  /** Returns the counts of an operation's namespace, which nothing has checked; those of none, if it gets none of its own. */
  function tallyOfRefused(of: UsedNamespace): Tally {
    const known = tenants.get(of.tenantId)?.get(of.namespace);
    if (known !== undefined) return known;
    const hasRoom = refusedNamespaces < MAX_REFUSED_NAMESPACES && NAMESPACE_PATTERN.test(of.namespace);
    if (!hasRoom) return tallyOf({ tenantId: of.tenantId, namespace: "" });
    refusedNamespaces++;
    return tallyOf(of);
  }

  function tallyOf(of: UsedNamespace): Tally {
    const known = tenants.get(of.tenantId)?.get(of.namespace);
    if (known !== undefined) return known;
    const tally = new Tally(of);
    if (size >= maxNamespaces) {
      onDropped();
      return tally;
    }
    let namespaces = tenants.get(of.tenantId);
    if (namespaces === undefined) {
      namespaces = new Map();
      tenants.set(of.tenantId, namespaces);
    }
    namespaces.set(of.namespace, tally);
    size++;
    return tally;
  }

  const hooks: Omit<OperationHooks, "declined" | "count"> = {
    claimed(claim, outcome, atMs) {
      tallyOf(claim.id).claimed(outcome, claim, atMs);
    },
    refused(of, counter) {
      const { counters } = tallyOf(of);
      counters.claims++;
      counters[counter]++;
    },
    limited(of, cause, mode) {
      const counter = mode === "dry_run" ? "would_be_refused" : REFUSED[cause];
      if (REFUSED[cause] !== undefined && counter !== undefined) tallyOfRefused(of).counters[counter]++;
    },
    took({ tenantId, namespace }, durationMs) {
      const latency = tenants.get(tenantId)?.get(namespace)?.latency;
      if (latency === undefined) return;
      const bucket = latencyBucket(durationMs);
      latency[bucket] = (latency[bucket] as number) + 1;
    },
  };
  return {
    ...hooks,
    count(of: UsedNamespace, counter: UsageCounter, times = 1): void {
      tallyOf(of).counters[counter] += times;
    },
    /** Removes and returns the counts of up to `max` namespaces. */
    take(max: number): readonly UsageCount[] {
      refusedNamespaces = 0;
      const taken: Tally[] = [];
      for (const [tenantId, namespaces] of tenants) {
        for (const [namespace, tally] of namespaces) {
          if (taken.length === max) break;
          taken.push(tally);
          namespaces.delete(namespace);
        }
        if (namespaces.size > 0) break;
        tenants.delete(tenantId);
      }
      size -= taken.length;
      return taken;
    },
    /** Returns the number of namespaces that have counts. */
    size: () => size,
  };
}
