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
    (lane ?? this.#addLane(tenant)).items.push(item);
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
    for (const lane of finished) if (lane.inFlight > 0) this.#inFlight.set(lane.tenant, lane.inFlight);
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
