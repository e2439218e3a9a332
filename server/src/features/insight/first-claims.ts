import type { OperationHooks, UsedNamespace } from "../../core/claims/after-operation.ts";
import type { RecordId } from "../../core/domain/record.ts";
import { fingerprintDepth } from "./domain/depth.ts";

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

/** Claims of a namespace and interval whose keys are observed, with any fingerprint: enough for shares of a day. */
const MAX_OBSERVED = 50;
/** First claims that wait to be hashed, a millisecond's work. So the buffer holds few keys for long. */
const MAX_FIRST_CLAIMS = 4096;
/** Namespaces with claims in one interval, about 20 MiB. Claims of further ones are neither observed nor sampled. */
const MAX_NAMESPACES = 100_000;

/** What is decided once for each namespace and interval. */
interface Decision {
  readonly isSampled: boolean;
  readonly fingerprintShift: number | undefined;
  observed: number;
}

const NOT_SAMPLED: Decision = { isSampled: false, fingerprintShift: undefined, observed: 0 };

/** Keeps claims that began an operation until they are taken, those that are observed and those of sampled namespaces. */
export function createFirstClaimsBuffer({
  isSampled,
  onFull,
  fingerprintShiftOf,
  onObservedFull,
}: {
  isSampled(of: UsedNamespace): boolean;
  /** Called, after the claim was answered, when MAX_FIRST_CLAIMS claims wait for `takeFirstClaims`. */
  onFull(): void;
  /** Returns the least `fingerprintDepth` whose claims are observed; undefined: no claim of the namespace is. */
  fingerprintShiftOf?(of: UsedNamespace): number | undefined;
  /** Called, after the claim was answered, when MAX_FIRST_CLAIMS claims wait for `takeObserved`. */
  onObservedFull?(): void;
}) {
  const first = { ids: [] as RecordId[], atMs: [] as number[], retentionsS: [] as number[] };
  let observed: ObservedClaim[] = [];
  const tenants = new Map<number, Map<string, Decision>>();
  let size = 0;

  function decisionOf(of: UsedNamespace): Decision {
    let namespaces = tenants.get(of.tenantId);
    const known = namespaces?.get(of.namespace);
    if (known !== undefined) return known;
    if (size >= MAX_NAMESPACES) return NOT_SAMPLED;
    if (namespaces === undefined) {
      namespaces = new Map();
      tenants.set(of.tenantId, namespaces);
    }
    const decision = { isSampled: isSampled(of), fingerprintShift: fingerprintShiftOf?.(of), observed: 0 };
    namespaces.set(of.namespace, decision);
    size++;
    return decision;
  }

  const claimed: OperationHooks["claimed"] = ({ id, fingerprint, retentionInForceS }, outcome) => {
    if (outcome.kind !== "claimed" || outcome.attempt !== 1 || outcome.repeated) return;
    if (outcome.endedFirstClaimedAtMs !== undefined) return;
    const decision = decisionOf(id);
    if (observes(decision, fingerprint)) {
      observed.push({ id, fingerprint, atMs: outcome.firstClaimedAtMs });
      if (observed.length % MAX_FIRST_CLAIMS === 0 && onObservedFull) setImmediate(onObservedFull);
    }
    if (!decision.isSampled) return;
    first.ids.push(id);
    first.atMs.push(outcome.firstClaimedAtMs);
    first.retentionsS.push(retentionInForceS);
    if (first.ids.length % MAX_FIRST_CLAIMS === 0) setImmediate(onFull);
  };

  return {
    claimed,
    /** Removes and returns the first claims of keys in sampled namespaces. */
    takeFirstClaims(): FirstClaims {
      const taken = { ids: [...first.ids], atMs: [...first.atMs], retentionsS: [...first.retentionsS] };
      for (const column of Object.values(first)) column.length = 0;
      return taken;
    },
    /** Removes and returns the first claims whose keys are observed: some of each namespace, and those of sampled fingerprints. */
    takeObserved(): readonly ObservedClaim[] {
      const taken = observed;
      observed = [];
      return taken;
    },
    /** Begins the next interval: asks again for the sampling of each namespace, and observes its first claims again. */
    beginInterval(): void {
      tenants.clear();
      size = 0;
    },
  };
}

/** Returns whether the key of a claim that began an operation is observed, and counts it. */
function observes(decision: Decision, fingerprint: Uint8Array | undefined): boolean {
  if (decision.fingerprintShift === undefined) return false;
  if (decision.observed < MAX_OBSERVED) {
    decision.observed++;
    return true;
  }
  return fingerprint !== undefined && fingerprintDepth(fingerprint) >= decision.fingerprintShift;
}
