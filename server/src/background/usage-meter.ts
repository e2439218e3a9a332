import type { ClaimOutcome } from "../domain/claim.ts";
import { LATENESS_LIMITS_MS, latenessBucket, type UsageCounter } from "../domain/usage.ts";

/** The counts of one namespace since the last flush. */
export interface NamespaceUsage {
  readonly tenantId: number;
  readonly namespace: string;
  readonly counters: Readonly<Record<UsageCounter, number>>;
  /** Repeated claims by `latenessBucket`. */
  readonly repeatLateness: readonly number[];
}

/** Counts the use of namespaces. Its counts are stored every few seconds. */
export interface UsageMeter {
  /** Counts a Claim that was answered at a time of the database's clock. */
  claimed(of: UsedNamespace, outcome: ClaimOutcome, atMs: number): void;
  /** Counts a Claim that was refused because the key is bound to another fingerprint. */
  mismatched(of: UsedNamespace): void;
  count(of: UsedNamespace, counter: UsageCounter, times?: number): void;
  /** Removes and returns the counts of up to `maxNamespaces` namespaces. */
  take(maxNamespaces: number): readonly NamespaceUsage[];
  /** Returns the number of namespaces that have counts. */
  size(): number;
}

export interface UsedNamespace {
  readonly tenantId: number;
  readonly namespace: string;
}

class Tally implements NamespaceUsage {
  readonly tenantId: number;
  readonly namespace: string;
  readonly counters: Record<UsageCounter, number> = {
    claims: 0,
    granted: 0,
    replayed: 0,
    in_progress: 0,
    ambiguous: 0,
    mismatches: 0,
    reclaims: 0,
    fenced: 0,
    completions: 0,
    swept: 0,
  };
  readonly repeatLateness: number[] = new Array(LATENESS_LIMITS_MS.length + 1).fill(0);

  constructor({ tenantId, namespace }: UsedNamespace) {
    this.tenantId = tenantId;
    this.namespace = namespace;
  }

  claimed(outcome: ClaimOutcome, atMs: number): void {
    const { counters } = this;
    counters.claims++;
    switch (outcome.kind) {
      case "claimed":
        counters.granted++;
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
    const bucket = latenessBucket(atMs - outcome.firstClaimedAtMs);
    this.repeatLateness[bucket] = (this.repeatLateness[bucket] ?? 0) + 1;
  }
}

/**
 * Maximum namespaces with counts, about 50 MiB: far more than are used between two flushes. It is reached if
 * flushes fail for long. Then counts of further namespaces are dropped.
 */
const MAX_NAMESPACES = 100_000;

/** @param onDropped is called for each count that is dropped. */
export function createUsageMeter(onDropped: () => void, maxNamespaces = MAX_NAMESPACES): UsageMeter {
  const tenants = new Map<number, Map<string, Tally>>();
  let size = 0;

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

  function takeOf(tenantId: number, namespaces: Map<string, Tally>, max: number): Tally[] {
    const taken: Tally[] = [];
    for (const tally of namespaces.values()) {
      if (taken.length === max) break;
      taken.push(tally);
      namespaces.delete(tally.namespace);
    }
    if (namespaces.size === 0) tenants.delete(tenantId);
    size -= taken.length;
    return taken;
  }

  return {
    claimed(of, outcome, atMs) {
      tallyOf(of).claimed(outcome, atMs);
    },
    mismatched(of) {
      const { counters } = tallyOf(of);
      counters.claims++;
      counters.mismatches++;
    },
    count(of, counter, times = 1) {
      tallyOf(of).counters[counter] += times;
    },
    take(max) {
      const taken: Tally[] = [];
      for (const [tenantId, namespaces] of tenants) {
        if (taken.length === max) break;
        taken.push(...takeOf(tenantId, namespaces, max - taken.length));
      }
      return taken;
    },
    size: () => size,
  };
}
