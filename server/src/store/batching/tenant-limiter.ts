/** A tenant's weight against the others', 1-100. */
export type WeightOf = (tenantId: number) => number;

/** What each tenant may have of the replica's statements while others want them, too. */
export interface TenantLimiter {
  /** How many operations a tenant may have taken in its turn. */
  readonly weightOf: WeightOf;
  /** A tenant's operations come. */
  noteActivity(tenantId: number, nowMs: number): void;
  /**
   * How many operations of one kind a tenant may have in statements at once: any number while nobody else calls, and at
   * least one.
   */
  maxInFlightOf(tenantId: number, nowMs: number): number;
}

export interface TenantLimiterOptions {
  readonly weightOf: WeightOf;
  /** What each tenant that calls adds to the places that all of them divide by their weights; 0: nobody is bounded. */
  readonly places: number;
}

/** A tenant that called this long ago still counts: between two calls of a loop, its places aren't anybody's. */
const CALLING_MS = 1000;

/** Nobody's statements: everything may leave together. */
export const UNLIMITED: TenantLimiter = {
  weightOf: () => 1,
  noteActivity() {},
  maxInFlightOf: () => Number.POSITIVE_INFINITY,
};

interface Caller {
  calledAtMs: number;
  weight: number;
}

/** @see TenantLimiter */
export function createTenantLimiter({ weightOf, places }: TenantLimiterOptions): TenantLimiter {
  if (places === 0) return { ...UNLIMITED, weightOf };
  /** Whoever called lately, the latest last. */
  const callers = new Map<number, Caller>();
  let latest: number | undefined;
  let weights = 0;

  function forget(tenantId: number, { weight }: Caller): void {
    callers.delete(tenantId);
    weights -= weight;
  }

  function forgetQuiet(nowMs: number): void {
    for (const [tenantId, caller] of callers) {
      if (nowMs - caller.calledAtMs < CALLING_MS) return;
      forget(tenantId, caller);
    }
  }

  return {
    weightOf,

    noteActivity(tenantId, nowMs) {
      let caller = callers.get(tenantId);
      if (caller === undefined || tenantId !== latest) {
        if (caller !== undefined) forget(tenantId, caller);
        caller = { calledAtMs: nowMs, weight: weightOf(tenantId) };
        callers.set(tenantId, caller);
        weights += caller.weight;
        latest = tenantId;
      }
      caller.calledAtMs = nowMs;
    },

    maxInFlightOf(tenantId, nowMs) {
      forgetQuiet(nowMs);
      const own = callers.get(tenantId);
      const others = callers.size - (own === undefined ? 0 : 1);
      if (others === 0) return Number.POSITIVE_INFINITY;
      const weight = own?.weight ?? weightOf(tenantId);
      const allWeights = own === undefined ? weights + weight : weights;
      return Math.max(1, Math.floor((places * (others + 1) * weight) / allWeights));
    },
  };
}
