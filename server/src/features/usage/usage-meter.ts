import type { OperationHooks, UsedNamespace } from "../../core/claims/hooks.ts";
import type { ClaimOutcome, RecordId } from "../../core/domain/record.ts";
import { latenessBucket } from "./lateness.ts";
import type { RetentionUsage, UsageCount } from "./store/usage.ts";
import type { UsageCounter } from "./usage.ts";

/** Counts the use of namespaces. Its counts are stored every few seconds. */
export interface UsageMeter extends OperationHooks {
  count(of: UsedNamespace, counter: UsageCounter, times?: number): void;
  /** Removes and returns the counts of up to `maxNamespaces` namespaces. */
  take(maxNamespaces: number): readonly UsageCount[];
  /** Returns the number of namespaces that have counts. */
  size(): number;
  /** Removes and returns the first claims of keys in sampled namespaces. */
  takeFirstClaims(): FirstClaims;
  /** Removes and returns the first claims whose keys are observed: some of each namespace, and those of sampled fingerprints. */
  takeObserved(): readonly ObservedClaim[];
}

/** A claim that began an operation, and whose key is observed. */
export interface ObservedClaim {
  readonly id: RecordId;
  readonly fingerprint: Uint8Array | undefined;
  /** When it was granted, in milliseconds since the Unix epoch on the database's clock. */
  readonly atMs: number;
}

/** Claims that began an operation, as columns. */
export interface FirstClaims {
  readonly ids: readonly RecordId[];
  /** When each was granted, in milliseconds since the Unix epoch on the database's clock. */
  readonly atMs: readonly number[];
  /** The key retention in force at each. */
  readonly retentionsS: readonly number[];
}

/** Takes the first claims of keys in sampled namespaces. It is asked once for each namespace and flush. */
export interface ClaimSampling {
  isSampled(of: UsedNamespace): boolean;
  /** Called, after the claim was answered, when MAX_FIRST_CLAIMS claims wait for `takeFirstClaims`. */
  onFull(): void;
  /** Returns the least `fingerprintDepth` whose claims are observed; undefined: no claim of the namespace is. */
  fingerprintShiftOf?(of: UsedNamespace): number | undefined;
  /** Called, after the claim was answered, when MAX_FIRST_CLAIMS claims wait for `takeObserved`. */
  onObservedFull?(): void;
}

const NO_SAMPLING: ClaimSampling = { isSampled: () => false, onFull: () => {} };

/** Claims of a namespace and flush whose keys are observed, with any fingerprint: enough for shares of a day. */
const MAX_OBSERVED = 50;

/**
 * Returns a fingerprint's depth: at least s for one in 2^s, the same on every replica. The hash selects, and is
 * never stored.
 */
export function fingerprintDepth(fingerprint: Uint8Array): number {
  let hash = 0;
  for (let i = 0; i < fingerprint.length; i++)
    hash = Math.imul(hash ^ (fingerprint[i] as number), 0x01000193);
  // The last step of MurmurHash3 (public domain): each bit of the sum changes each bit of the hash.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash === 0 ? 32 : 31 - Math.clz32(hash & -hash);
}

class RetentionTally implements RetentionUsage {
  readonly retentionS: number;
  claims = 0;
  firstClaims = 0;
  readonly repeats = new Map<number, number>();
  readonly late = new Map<number, number>();

  constructor(retentionS: number) {
    this.retentionS = retentionS;
  }
}

/** More changes of a policy between two flushes count under the last one. */
const MAX_RETENTIONS = 4;

class Tally implements UsageCount {
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
  readonly retentions: RetentionTally[] = [];
  readonly isSampled: boolean;
  readonly #fingerprintShift: number | undefined;
  #observed = 0;
  /** The one that counted last. */
  #retention: RetentionTally | undefined;

  constructor({ tenantId, namespace }: UsedNamespace, isSampled: boolean, fingerprintShift?: number) {
    this.tenantId = tenantId;
    this.namespace = namespace;
    this.isSampled = isSampled;
    this.#fingerprintShift = fingerprintShift;
  }

  /** Returns whether the key of a claim that began an operation is observed. */
  observes(fingerprint: Uint8Array | undefined): boolean {
    if (this.#fingerprintShift === undefined) return false;
    if (this.#observed < MAX_OBSERVED) {
      this.#observed++;
      return true;
    }
    return fingerprint !== undefined && fingerprintDepth(fingerprint) >= this.#fingerprintShift;
  }

  /** Returns whether the claim began an operation. */
  claimed(outcome: ClaimOutcome, retentionS: number, atMs: number): boolean {
    const { counters } = this;
    let retention = this.#retention;
    if (retention?.retentionS !== retentionS) retention = this.#changeRetention(retentionS);
    counters.claims++;
    retention.claims++;
    switch (outcome.kind) {
      case "claimed":
        counters.granted++;
        if (outcome.attempt === 1 && !outcome.repeated) {
          retention.firstClaims++;
          const { endedFirstClaimedAtMs } = outcome;
          if (endedFirstClaimedAtMs === undefined) return true;
          increment(retention.late, latenessBucket(outcome.firstClaimedAtMs - endedFirstClaimedAtMs));
          return false;
        }
        if (outcome.attempt === 1) return false;
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
    return false;
  }

  #changeRetention(retentionS: number): RetentionTally {
    const { retentions } = this;
    const known = retentions.find((each) => each.retentionS === retentionS);
    const last = retentions.length === MAX_RETENTIONS ? retentions.at(-1) : undefined;
    const retention = known ?? last ?? new RetentionTally(retentionS);
    if (!retentions.includes(retention)) retentions.push(retention);
    this.#retention = retention;
    return retention;
  }
}

function increment(counts: Map<number, number>, bucket: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
}

/**
 * Maximum namespaces with counts, about 50 MiB: far more than are used between two flushes. It is reached if
 * flushes fail for long. Then counts of further namespaces are dropped.
 */
const MAX_NAMESPACES = 100_000;

/** First claims that wait to be hashed, a millisecond's work. So the meter holds few keys for long. */
const MAX_FIRST_CLAIMS = 4096;

/** @param onDropped is called for each count that is dropped. */
export function createUsageMeter(
  onDropped: () => void,
  { isSampled, onFull, fingerprintShiftOf, onObservedFull }: ClaimSampling = NO_SAMPLING,
  maxNamespaces = MAX_NAMESPACES,
): UsageMeter {
  const first = { ids: [] as RecordId[], atMs: [] as number[], retentionsS: [] as number[] };
  let observed: ObservedClaim[] = [];
  const tenants = new Map<number, Map<string, Tally>>();
  let size = 0;

  function tallyOf(of: UsedNamespace): Tally {
    const known = tenants.get(of.tenantId)?.get(of.namespace);
    if (known !== undefined) return known;
    const tally = new Tally(of, isSampled(of), fingerprintShiftOf?.(of));
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
    claimed({ id, fingerprint, retentionInForceS }, outcome, atMs) {
      const tally = tallyOf(id);
      const isFirst = tally.claimed(outcome, retentionInForceS, atMs);
      if (!isFirst) return;
      if (tally.observes(fingerprint)) {
        observed.push({ id, fingerprint, atMs: outcome.firstClaimedAtMs });
        if (observed.length % MAX_FIRST_CLAIMS === 0 && onObservedFull) setImmediate(onObservedFull);
      }
      if (!tally.isSampled) return;
      first.ids.push(id);
      first.atMs.push(outcome.firstClaimedAtMs);
      first.retentionsS.push(retentionInForceS);
      if (first.ids.length % MAX_FIRST_CLAIMS === 0) setImmediate(onFull);
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
    takeFirstClaims() {
      const taken = { ids: [...first.ids], atMs: [...first.atMs], retentionsS: [...first.retentionsS] };
      for (const column of Object.values(first)) column.length = 0;
      return taken;
    },
    takeObserved() {
      const taken = observed;
      observed = [];
      return taken;
    },
  };
}
