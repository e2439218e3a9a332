/** Divides the turns of the event loop among parties, such as tenants or addresses. */
export type TurnShares<Party> = ReturnType<typeof createTurnShares<Party>>;

/** Requests of one address, over all of its connections to a port: a turn of the event loop begins as many of them. */
const MAX_REQUESTS_PER_TURN = 64;
/** Large batches use up their address's turn before 64 of them have begun. */
const MAX_MS_PER_TURN = 10;

/** Returns the shares of the addresses that are connected to a port; their work is to begin a request. */
export function createAddressShares() {
  return createTurnShares<string>({ maxPerTurn: MAX_REQUESTS_PER_TURN, maxMs: MAX_MS_PER_TURN });
}

/** What a party has done in this turn. */
interface Used {
  count: number;
  ms: number;
}

/** Returns equal shares of each turn. Work that waits is kept until it is dropped: its caller bounds how much there can be. */
export function createTurnShares<Party>(options: {
  /** Pieces of work that a party may do in a turn. */
  readonly maxPerTurn: number;
  /** No piece begins after the party's work of a turn has taken this long. */
  readonly maxMs: number;
}) {
  const { maxPerTurn, maxMs } = options;
  const used = new Map<Party, Used>();
  const deferred = new Map<Party, Set<() => void>>();
  let isScheduled = false;

  const isUsedUp = ({ count, ms }: Used) => count >= maxPerTurn || ms >= maxMs;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(startTurn);
  }

  function startTurn(): void {
    isScheduled = false;
    used.clear();
    for (const [party, works] of [...deferred]) {
      schedule();
      const share = shareOf(party);
      for (const next of works) {
        if (isUsedUp(share)) break;
        // Taken before it begins: work that throws is not begun again.
        works.delete(next);
        doNow(share, next);
      }
      if (works.size === 0) deferred.delete(party);
    }
  }

  function shareOf(party: Party): Used {
    const share = used.get(party) ?? { count: 0, ms: 0 };
    used.set(party, share);
    return share;
  }

  function doNow(share: Used, work: () => void): void {
    share.count++;
    const startedAtMs = performance.now();
    work();
    share.ms += performance.now() - startedAtMs;
  }

  return {
    /**
     * Does the work now, or in a later turn if the party has used up its share of this one; in the order of the calls. Returns
     * undefined, or for work that waits a function that drops it, to be called when it is no longer needed: a party that
     * leaves and comes back would otherwise fill the memory with work for no one, and wait behind it.
     */
    run(party: Party, work: () => void): (() => void) | undefined {
      schedule();
      let works = deferred.get(party);
      if (works === undefined) {
        const share = shareOf(party);
        if (!isUsedUp(share)) {
          doNow(share, work);
          return undefined;
        }
        works = new Set();
        deferred.set(party, works);
      }
      // A function of its own, so that it can be dropped.
      const waiting = () => work();
      const waitingOnes = works.add(waiting);
      return () => void waitingOnes.delete(waiting);
    },
  };
}
