/** What waits for its turn, in a lane for each tenant. */
export interface FairQueue<Item> {
  /** Puts an item at the end of its tenant's lane; false if the lane may not grow any more. */
  push(tenant: number, item: Item): boolean;
  /**
   * Offers every item once, by weighted round-robin: of each tenant until as many were taken as its weight, then of the
   * next one; and the next time it goes on where it was when no more was taken. Those of one tenant are offered in the
   * order in which they came, and what stays keeps its place. Of a tenant whose places are all taken nothing more is
   * offered.
   */
  take(offer: (item: Item) => Offered): void;
  /** An item that was taken is done with, and its place free. */
  done(tenant: number): void;
  readonly size: number;
}

/** What became of an item that was offered: it left at its tenant's expense, it left for nothing, or it stays. */
export type Offered = "taken" | "free" | "stays";

export interface FairQueueOptions {
  /** Of all lanes together. */
  readonly maxItems: number;
  /** How many items a tenant may have taken in its turn: at least 1. */
  readonly weightOf: (tenant: number) => number;
  /** How many items that were taken a tenant may have before any of them is done with. */
  readonly maxInFlightOf: (tenant: number) => number;
}

interface Lane<Item> {
  readonly tenant: number;
  items: Item[];
  /** While items are offered: where the next one stands. */
  next: number;
  /** What was offered, and stays. */
  stayed: Item[];
  /** How many items it may still have taken in its turn. */
  credit: number;
  /** While items are offered: how many were taken and aren't done with, and how many may be. */
  taken: number;
  places: number;
}

/** @see FairQueue */
export function createFairQueue<Item>(options: FairQueueOptions): FairQueue<Item> {
  const { maxItems, weightOf, maxInFlightOf } = options;
  const lanes = new Map<number, Lane<Item>>();
  /** The same lanes in the order of their turns; none is empty. */
  let turns: Lane<Item>[] = [];
  /** How many items of a tenant were taken and aren't done with. */
  const taken = new Map<number, number>();
  let size = 0;

  function addLane(tenant: number): Lane<Item> {
    const lane: Lane<Item> = {
      tenant,
      items: [],
      next: 0,
      stayed: [],
      credit: weightOf(tenant),
      taken: 0,
      places: 0,
    };
    lanes.set(tenant, lane);
    turns.push(lane);
    return lane;
  }

  function hasMore({ next, items, taken, places }: Lane<Item>): boolean {
    return taken < places && next < items.length;
  }

  /** Offers a lane's items until its turn, or the lane, is over. */
  function giveTurn(lane: Lane<Item>, offer: (item: Item) => Offered): void {
    while (hasMore(lane)) {
      if (lane.credit === 0) {
        lane.credit = weightOf(lane.tenant);
        return;
      }
      const item = lane.items[lane.next++] as Item;
      const offered = offer(item);
      if (offered === "stays") lane.stayed.push(item);
      else size--;
      if (offered === "taken") {
        lane.credit--;
        lane.taken++;
      }
    }
  }

  function takenOf(tenant: number): number {
    return taken.get(tenant) ?? 0;
  }

  /** Readies a lane for the next time; false if nothing is left of it. */
  function keepStayed(lane: Lane<Item>): boolean {
    lane.items = lane.stayed.concat(lane.items.slice(lane.next));
    lane.stayed = [];
    lane.next = 0;
    return lane.items.length > 0 || !lanes.delete(lane.tenant);
  }

  return {
    push(tenant, item) {
      const lane = lanes.get(tenant);
      // A tenant may queue as much as it leaves free: however many are greedy, there is room for one more.
      if ((lane?.items.length ?? 0) >= maxItems - size) return false;
      (lane ?? addLane(tenant)).items.push(item);
      size++;
      return true;
    },

    take(offer) {
      const over: Lane<Item>[] = [];
      for (const lane of turns) {
        lane.taken = takenOf(lane.tenant);
        lane.places = maxInFlightOf(lane.tenant);
      }
      for (let round = turns; round.length > 0; ) {
        const again: Lane<Item>[] = [];
        for (const lane of round) {
          giveTurn(lane, offer);
          (hasMore(lane) ? again : over).push(lane);
        }
        round = again;
      }
      for (const lane of over) if (lane.taken > 0) taken.set(lane.tenant, lane.taken);
      turns = over.filter(keepStayed);
    },

    done(tenant) {
      const left = takenOf(tenant) - 1;
      if (left > 0) taken.set(tenant, left);
      else taken.delete(tenant);
    },

    get size() {
      return size;
    },
  };
}
