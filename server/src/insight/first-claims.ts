import type { OperationHooks, UsedNamespace } from "../records/after-operation.ts";
import { beginsOperation, type RecordId } from "../records/record.ts";
import { fingerprintDepth } from "./domain/depth.ts";

/** A claim that began an operation, and which is observed, or whose key may be sampled. */
export interface FirstClaim {
  readonly id: RecordId;
  /** Of an observed claim alone. */
  readonly fingerprint: Uint8Array | undefined;
  /** When it was granted, in milliseconds since the Unix epoch on the database's clock. */
  readonly atMs: number;
  /** The key retention in force. */
  readonly retentionS: number;
  /** Whether it is observed how its key was made. */
  readonly isObserved: boolean;
}

/** What is sampled of a namespace. */
export interface Sampling {
  /** Whether first claims of sampled keys may be late repeats. */
  readonly hasTombstones: boolean;
  /** The least `fingerprintDepth` of the fingerprints whose claims are observed. */
  readonly fingerprintShift: number;
}

/** Claims of a namespace and interval that are observed with any fingerprint: enough for shares of a day. */
const MAX_OBSERVED = 50;
/** First claims that wait to be hashed, a millisecond's work. So the buffer holds few keys for long. */
const MAX_FIRST_CLAIMS = 4096;
/** Namespaces with claims in one interval, about 20 MiB. Claims of further ones are neither observed nor sampled. */
const MAX_NAMESPACES = 100_000;

/** What is decided once for each namespace and interval. */
interface Decision extends Sampling {
  observed: number;
}

export type FirstClaims = ReturnType<typeof createFirstClaims>;

/** Keeps claims that began an operation until they are taken: those that are observed, and those of sampled namespaces. */
export function createFirstClaims({
  samplingOf,
  onFull,
}: {
  samplingOf(of: UsedNamespace): Sampling;
  /** Called, after the claim was answered, when MAX_FIRST_CLAIMS claims wait for `take`. */
  onFull(): void;
}) {
  let claims: FirstClaim[] = [];
  const tenants = new Map<number, Map<string, Decision>>();
  let size = 0;

  function decisionOf(of: UsedNamespace): Decision | undefined {
    let namespaces = tenants.get(of.tenantId);
    const known = namespaces?.get(of.namespace);
    if (known !== undefined || size >= MAX_NAMESPACES) return known;
    if (namespaces === undefined) {
      namespaces = new Map();
      tenants.set(of.tenantId, namespaces);
    }
    const decision = { ...samplingOf(of), observed: 0 };
    namespaces.set(of.namespace, decision);
    size++;
    return decision;
  }

  const claimed: OperationHooks["claimed"] = ({ id, fingerprint, retentionInForceS }, outcome) => {
    if (!beginsOperation(outcome)) return;
    if ("endedFirstClaimedAtMs" in outcome && outcome.endedFirstClaimedAtMs !== undefined) return;
    const decision = decisionOf(id);
    if (decision === undefined) return;
    const isObserved = observes(decision, fingerprint);
    if (!isObserved && !decision.hasTombstones) return;
    claims.push({
      id,
      fingerprint: isObserved ? fingerprint : undefined,
      atMs: outcome.firstClaimedAtMs,
      retentionS: retentionInForceS,
      isObserved,
    });
    if (claims.length % MAX_FIRST_CLAIMS === 0) setImmediate(onFull);
  };

  return {
    claimed,
    /** Removes and returns the claims. */
    take(): readonly FirstClaim[] {
      const taken = claims;
      claims = [];
      return taken;
    },
    /** Begins the next interval: asks again for the sampling of each namespace, and observes its first claims again. */
    beginInterval(): void {
      tenants.clear();
      size = 0;
    },
  };
}

/** Returns whether a claim that began an operation is observed, and counts it: some of each namespace, and those of sampled fingerprints. */
function observes(decision: Decision, fingerprint: Uint8Array | undefined): boolean {
  if (decision.observed < MAX_OBSERVED) {
    decision.observed++;
    return true;
  }
  return fingerprint !== undefined && fingerprintDepth(fingerprint) >= decision.fingerprintShift;
}
