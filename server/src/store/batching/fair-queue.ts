/** Queued items, in a lane for each tenant. */
export interface FairQueue<Item> {
  /** Appends an item to its tenant's lane. Returns false if the lane is full. */
  push(tenant: number, item: Item): boolean;
  /**
   * Asks `decide` about items, each at most once, by weighted round-robin: a tenant's items until as many
   * were taken as its weight, then the next tenant's. Items of one tenant come in the order in which they
   * were pushed, and kept items stay in that order. The next call continues the round where this one took its
   * last item. A tenant that has as many items in flight as it may have is skipped.
   */
  take(decide: (item: Item) => Decision): void;
  /** Ends one taken item of a tenant, which may then have another one in flight. */
  release(tenant: number): void;
  readonly size: number;
}

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
}

/** @see FairQueue */
export function createFairQueue<Item>(options: FairQueueOptions): FairQueue<Item> {
  const { maxItems, weightOf, maxInFlightOf } = options;
  const lanes = new Map<number, Lane<Item>>();
  /** The same lanes in the order of their turns. None is empty. */
  let lanesInOrder: Lane<Item>[] = [];
  const inFlight = new Map<number, number>();
  let size = 0;

  function addLane(tenant: number): Lane<Item> {
    const lane: Lane<Item> = {
      tenant,
      items: [],
      next: 0,
      kept: [],
      credit: weightOf(tenant),
      inFlight: 0,
      maxInFlight: 0,
    };
    lanes.set(tenant, lane);
    lanesInOrder.push(lane);
    return lane;
  }

  function hasMore(lane: Lane<Item>): boolean {
    return lane.inFlight < lane.maxInFlight && lane.next < lane.items.length;
  }

  /** Decides about a lane's items until its credit or its items are used up. */
  function takeTurn(lane: Lane<Item>, decide: (item: Item) => Decision): void {
    while (hasMore(lane)) {
      if (lane.credit === 0) {
        lane.credit = weightOf(lane.tenant);
        return;
      }
      const item = lane.items[lane.next++] as Item;
      const decision = decide(item);
      if (decision === "keep") lane.kept.push(item);
      else size--;
      if (decision === "take") {
        lane.credit--;
        lane.inFlight++;
      }
    }
  }

  function inFlightOf(tenant: number): number {
    return inFlight.get(tenant) ?? 0;
  }

  /** Leaves only the remaining items in a lane. Returns false, and deletes the lane, if there are none. */
  function compact(lane: Lane<Item>): boolean {
    lane.items = lane.kept.concat(lane.items.slice(lane.next));
    lane.kept = [];
    lane.next = 0;
    return lane.items.length > 0 || !lanes.delete(lane.tenant);
  }

  return {
    push(tenant, item) {
      const lane = lanes.get(tenant);
      // A tenant may queue as many items as it leaves free, so that one more tenant always finds room.
      if ((lane?.items.length ?? 0) >= maxItems - size) return false;
      (lane ?? addLane(tenant)).items.push(item);
      size++;
      return true;
    },

    take(decide) {
      const finished: Lane<Item>[] = [];
      for (const lane of lanesInOrder) {
        lane.inFlight = inFlightOf(lane.tenant);
        lane.maxInFlight = maxInFlightOf(lane.tenant);
      }
      for (let round = lanesInOrder; round.length > 0; ) {
        const nextRound: Lane<Item>[] = [];
        for (const lane of round) {
          takeTurn(lane, decide);
          (hasMore(lane) ? nextRound : finished).push(lane);
        }
        round = nextRound;
      }
      for (const lane of finished) if (lane.inFlight > 0) inFlight.set(lane.tenant, lane.inFlight);
      lanesInOrder = finished.filter(compact);
    },

    release(tenant) {
      const remaining = inFlightOf(tenant) - 1;
      if (remaining > 0) inFlight.set(tenant, remaining);
      else inFlight.delete(tenant);
    },

    get size() {
      return size;
    },
  };
}
