/**
 * What happens to an item: `take` moves it out of the queue and counts it as its tenant's item in flight
 * until `release`; `remove` moves it out without counting it; `keep` leaves it in the queue.
 */
export type Decision = "take" | "remove" | "keep";

export interface FairQueueOptions {
  /** Maximum items in all lanes together. */
  readonly maxItems: number;
  /** Returns how many items of a tenant may be taken before the next tenant's turn: at least 1. */
  readonly weightOf: (tenant: number) => number;
  /** Returns how many items a tenant may have in flight. */
  readonly maxInFlightOf: (tenant: number) => number;
  /** Called when items have to wait because their tenant has as many in flight as it may have; once for each item. */
  readonly onHeld?: ((tenant: number, items: number) => void) | undefined;
}

interface Lane<Item> {
  readonly tenant: number;
  items: Item[];
  /** During `take`: index of the next item to decide about. */
  next: number;
  /** During `take`: the items to keep. */
  kept: Item[];
  /** How many more items may be taken in this turn. */
  credit: number;
  /** During `take`: the tenant's items in flight. */
  inFlight: number;
  /** During `take`: how many of them there may be. */
  maxInFlight: number;
  /** How many items were pushed. */
  pushed: number;
  /** How many of the pushed items, from the first one, were decided about or reported as held. */
  seen: number;
}

/** Queued items, in a lane for each tenant. */
export class FairQueue<Item> {
  readonly #options: FairQueueOptions;
  readonly #lanes = new Map<number, Lane<Item>>();
  /** The same lanes in the order of their turns. None is empty. */
  #lanesInOrder: Lane<Item>[] = [];
  readonly #inFlight = new Map<number, number>();
  #size = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Appends an item to its tenant's lane. Returns false if the lane is full. */
  push(tenant: number, item: Item): boolean {
    const lane = this.#lanes.get(tenant);
    // A tenant may queue as many items as it leaves free, so that one more tenant always finds room.
    if ((lane?.items.length ?? 0) >= this.#options.maxItems - this.#size) return false;
    const own = lane ?? this.#addLane(tenant);
    own.items.push(item);
    own.pushed++;
    this.#size++;
    return true;
  }

  /**
   * Asks `decide` about items, each at most once, by weighted round-robin: a tenant's items until as many were
   * taken as its weight, then the next tenant's. Items of one tenant come in the order in which they were
   * pushed, and kept items stay in that order. The next call continues the round where this one took its last
   * item. A tenant that has as many items in flight as it may have is skipped.
   */
  take(decide: (item: Item) => Decision): void {
    const finished: Lane<Item>[] = [];
    for (const lane of this.#lanesInOrder) {
      lane.inFlight = this.#inFlightOf(lane.tenant);
      lane.maxInFlight = this.#options.maxInFlightOf(lane.tenant);
    }
    for (let round = this.#lanesInOrder; round.length > 0; ) {
      const nextRound: Lane<Item>[] = [];
      for (const lane of round) {
        this.#takeTurn(lane, decide);
        (hasMore(lane) ? nextRound : finished).push(lane);
      }
      round = nextRound;
    }
    for (const lane of finished) {
      if (lane.inFlight > 0) this.#inFlight.set(lane.tenant, lane.inFlight);
      this.#reportHeld(lane);
    }
    this.#lanesInOrder = finished.filter((lane) => this.#compact(lane));
  }

  /** Ends one taken item of a tenant, which may then have another one in flight. */
  release(tenant: number): void {
    const remaining = this.#inFlightOf(tenant) - 1;
    if (remaining > 0) this.#inFlight.set(tenant, remaining);
    else this.#inFlight.delete(tenant);
  }

  #addLane(tenant: number): Lane<Item> {
    const lane: Lane<Item> = {
      tenant,
      items: [],
      next: 0,
      kept: [],
      credit: this.#options.weightOf(tenant),
      inFlight: 0,
      maxInFlight: 0,
      pushed: 0,
      seen: 0,
    };
    this.#lanes.set(tenant, lane);
    this.#lanesInOrder.push(lane);
    return lane;
  }

  /** Decides about a lane's items until its credit or its items are used up. */
  #takeTurn(lane: Lane<Item>, decide: (item: Item) => Decision): void {
    while (hasMore(lane)) {
      if (lane.credit === 0) {
        lane.credit = this.#options.weightOf(lane.tenant);
        return;
      }
      const item = lane.items[lane.next++] as Item;
      const decision = decide(item);
      if (decision === "keep") lane.kept.push(item);
      else this.#size--;
      if (decision === "take") {
        lane.credit--;
        lane.inFlight++;
      }
    }
  }

  /** Reports the items at the end of a lane that `decide` was not asked about, those reported before excepted. */
  #reportHeld(lane: Lane<Item>): void {
    const held = Math.min(lane.items.length - lane.next, lane.pushed - lane.seen);
    lane.seen = lane.pushed;
    if (held > 0) this.#options.onHeld?.(lane.tenant, held);
  }

  #inFlightOf(tenant: number): number {
    return this.#inFlight.get(tenant) ?? 0;
  }

  /** Leaves only the remaining items in a lane. Returns false, and deletes the lane, if there are none. */
  #compact(lane: Lane<Item>): boolean {
    lane.items = lane.kept.concat(lane.items.slice(lane.next));
    lane.kept = [];
    lane.next = 0;
    return lane.items.length > 0 || !this.#lanes.delete(lane.tenant);
  }
}

function hasMore(lane: Lane<unknown>): boolean {
  return lane.inFlight < lane.maxInFlight && lane.next < lane.items.length;
}

/** Receives what happens in the queues of a replica's batchers. */
export interface BatchObserver {
  /** Adds a queue. `depth` returns the number of its operations. Returns the recorder of its operations' waits. */
  queueAdded(statement: string, depth: () => number): { observe(waitedMs: number): void };
  /** An operation was dropped because its deadline passed before its statement was sent. */
  droppedByDeadline(): void;
  /** Operations have to wait because their tenant has its share of operations in flight. */
  heldToShare(tenantId: number, operations: number): void;
}

/** Divides a replica's statements among the tenants that are active at the same time. */
export interface TenantLimiter {
  /** Returns how many operations of a tenant are taken in one of its turns: its weight compared with other tenants', 1 to 100. */
  readonly weightOf: (tenantId: number) => number;
  /** Marks a tenant as active: it has submitted operations. */
  noteActivity(tenantId: number, nowMs: number): void;
  /**
   * Returns how many operations of one kind a tenant may have in flight: at least one, and any number while
   * no other tenant is active.
   */
  maxInFlightOf(tenantId: number, nowMs: number): number;
  /** Observes the queues that the limiter limits. */
  readonly observer?: BatchObserver | undefined;
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

/** Creates a tenant limiter. */
export function createTenantLimiter(options: {
  readonly weightOf: TenantLimiter["weightOf"];
  /**
   * Slots for operations in flight that each active tenant adds. All active tenants divide the sum by their
   * weights. 0: no limit.
   */
  readonly slotsPerTenant: number;
  readonly observer?: BatchObserver;
}): TenantLimiter {
  const { weightOf, slotsPerTenant, observer } = options;
  if (slotsPerTenant === 0) return { ...UNLIMITED, weightOf, observer };
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
    observer,

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
