/** What waits for its turn, in a lane for each tenant. */
export interface FairQueue<Item> {
  /** Puts an item at the end of its tenant's lane; false if the lane may not grow any more. */
  push(tenant: number, item: Item): boolean;
  /**
   * Offers every item once, by weighted round-robin: of each tenant until as many were taken as its weight, then of the
   * next one; and the next time it goes on where it was when no more was taken. Those of one tenant are offered in the
   * order in which they came, and what stays keeps its place.
   */
  take(offer: (item: Item) => Offered): void;
  readonly size: number;
}

/** What became of an item that was offered: it left at its tenant's expense, it left for nothing, or it stays. */
export type Offered = "taken" | "free" | "stays";

export interface FairQueueOptions {
  /** Of all lanes together. */
  readonly maxItems: number;
  /** How many items a tenant may have taken in its turn: at least 1. */
  readonly weightOf: (tenant: number) => number;
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
}

/** @see FairQueue */
export function createFairQueue<Item>({ maxItems, weightOf }: FairQueueOptions): FairQueue<Item> {
  const lanes = new Map<number, Lane<Item>>();
  /** The same lanes in the order of their turns; none is empty. */
  let turns: Lane<Item>[] = [];
  let size = 0;

  function addLane(tenant: number): Lane<Item> {
    const lane: Lane<Item> = { tenant, items: [], next: 0, stayed: [], credit: weightOf(tenant) };
    lanes.set(tenant, lane);
    turns.push(lane);
    return lane;
  }

  /** Offers a lane's items until its turn, or the lane, is over. */
  function giveTurn(lane: Lane<Item>, offer: (item: Item) => Offered): void {
    while (lane.next < lane.items.length) {
      if (lane.credit === 0) {
        lane.credit = weightOf(lane.tenant);
        return;
      }
      const item = lane.items[lane.next++] as Item;
      const offered = offer(item);
      if (offered === "stays") lane.stayed.push(item);
      else size--;
      if (offered === "taken") lane.credit--;
    }
  }

  /** Readies a lane for the next time; false if nothing is left of it. */
  function keepStayed(lane: Lane<Item>): boolean {
    lane.items = lane.stayed;
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
      const done: Lane<Item>[] = [];
      for (let round = turns; round.length > 0; ) {
        const again: Lane<Item>[] = [];
        for (const lane of round) {
          giveTurn(lane, offer);
          (lane.next < lane.items.length ? again : done).push(lane);
        }
        round = again;
      }
      turns = done.filter(keepStayed);
    },

    get size() {
      return size;
    },
  };
}
