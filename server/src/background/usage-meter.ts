import type { ClaimOutcome } from "../domain/claim.ts";
import { LATENESS_LIMITS_MS, latenessBucket, type UsageCounter } from "../domain/usage.ts";

/** What was counted of one namespace since the last flush. */
export interface NamespaceUsage {
  readonly tenantId: number;
  readonly namespace: string;
  readonly counters: Readonly<Record<UsageCounter, number>>;
  /** Repeats by `latenessBucket`. */
  readonly repeatLateness: readonly number[];
}

/** Counts what namespaces are used for; what it holds is stored every few seconds. */
export interface UsageMeter {
  /** A Claim was answered, at this moment of the database's clock. */
  claimed(of: UsedNamespace, outcome: ClaimOutcome, atMs: number): void;
  /** A Claim was refused because the key is bound to another fingerprint. */
  mismatched(of: UsedNamespace): void;
  count(of: UsedNamespace, counter: UsageCounter, times?: number): void;
  /** Takes what was counted of up to so many namespaces, of each once. */
  take(maxNamespaces: number): readonly NamespaceUsage[];
  /** Of how many namespaces something was counted that was not taken. */
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

  repeated(latenessMs: number): void {
    const bucket = latenessBucket(latenessMs);
    this.repeatLateness[bucket] = (this.repeatLateness[bucket] ?? 0) + 1;
  }
}

/**
 * Namespaces that are counted at once; about 50 MiB. Far more than are used between two flushes: reached where flushes fail
 * for long, and then counts of namespaces beyond are dropped.
 */
const MAX_NAMESPACES = 100_000;

/** @param onDropped is told of each count that is dropped. */
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
      const tally = tallyOf(of);
      const { counters } = tally;
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
      tally.repeated(atMs - outcome.firstClaimedAtMs);
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
