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
  /** What was counted since the last time it was taken. */
  take(): readonly NamespaceUsage[];
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

/** @see UsageMeter */
export function createUsageMeter(): UsageMeter {
  let tenants = new Map<number, Map<string, Tally>>();

  function tallyOf(of: UsedNamespace): Tally {
    let namespaces = tenants.get(of.tenantId);
    if (namespaces === undefined) {
      namespaces = new Map();
      tenants.set(of.tenantId, namespaces);
    }
    let tally = namespaces.get(of.namespace);
    if (tally === undefined) {
      tally = new Tally(of);
      namespaces.set(of.namespace, tally);
    }
    return tally;
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
    take() {
      const taken = [...tenants.values()].flatMap((namespaces) => [...namespaces.values()]);
      tenants = new Map();
      return taken;
    },
  };
}
