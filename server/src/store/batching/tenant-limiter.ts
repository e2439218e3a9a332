/** Returns a tenant's weight compared with other tenants', 1 to 100. */
export type WeightOf = (tenantId: number) => number;

/** Divides a replica's statements among the tenants that are active at the same time. */
export interface TenantLimiter {
  /** Returns how many operations of a tenant are taken in one of its turns. */
  readonly weightOf: WeightOf;
  /** Marks a tenant as active: it has submitted operations. */
  noteActivity(tenantId: number, nowMs: number): void;
  /**
   * Returns how many operations of one kind a tenant may have in flight: at least one, and any number while
   * no other tenant is active.
   */
  maxInFlightOf(tenantId: number, nowMs: number): number;
}

export interface TenantLimiterOptions {
  readonly weightOf: WeightOf;
  /**
   * Slots for operations in flight that each active tenant adds. All active tenants divide the sum by their
   * weights. 0: no limit.
   */
  readonly slotsPerTenant: number;
}

/**
 * A tenant stays active for this long after its last operation, so that it keeps its slots between two calls
 * of a loop.
 */
const ACTIVE_MS = 1000;

/** Limits no tenant. All weights are 1. */
export const UNLIMITED: TenantLimiter = {
  weightOf: () => 1,
  noteActivity() {},
  maxInFlightOf: () => Number.POSITIVE_INFINITY,
};

interface ActiveTenant {
  activeAtMs: number;
  weight: number;
}

/** @see TenantLimiter */
export function createTenantLimiter({ weightOf, slotsPerTenant }: TenantLimiterOptions): TenantLimiter {
  if (slotsPerTenant === 0) return { ...UNLIMITED, weightOf };
  /** In the order of their last activity, the latest last. */
  const activeTenants = new Map<number, ActiveTenant>();
  let latestTenantId: number | undefined;
  let totalWeight = 0;

  function remove(tenantId: number, { weight }: ActiveTenant): void {
    activeTenants.delete(tenantId);
    totalWeight -= weight;
  }

  function removeInactive(nowMs: number): void {
    for (const [tenantId, tenant] of activeTenants) {
      if (nowMs - tenant.activeAtMs < ACTIVE_MS) return;
      remove(tenantId, tenant);
    }
  }

  return {
    weightOf,

    noteActivity(tenantId, nowMs) {
      let tenant = activeTenants.get(tenantId);
      if (tenant === undefined || tenantId !== latestTenantId) {
        if (tenant !== undefined) remove(tenantId, tenant);
        tenant = { activeAtMs: nowMs, weight: weightOf(tenantId) };
        activeTenants.set(tenantId, tenant);
        totalWeight += tenant.weight;
        latestTenantId = tenantId;
      }
      tenant.activeAtMs = nowMs;
    },

    maxInFlightOf(tenantId, nowMs) {
      removeInactive(nowMs);
      const own = activeTenants.get(tenantId);
      const others = activeTenants.size - (own === undefined ? 0 : 1);
      if (others === 0) return Number.POSITIVE_INFINITY;
      const weight = own?.weight ?? weightOf(tenantId);
      const weightOfAll = own === undefined ? totalWeight + weight : totalWeight;
      return Math.max(1, Math.floor((slotsPerTenant * (others + 1) * weight) / weightOfAll));
    },
  };
}
