/** Divides the turns of the event loop among parties, such as tenants or addresses. */
export interface TurnShares<Party> {
  /** Does the work now, or in a later turn if the party has used up its share of this one; in the order of the calls. */
  run(party: Party, work: () => void): void;
}

/**
 * Returns shares of `maxPerTurn` pieces of work for each party. Work that waits is kept: its caller bounds how much there
 * can be.
 */
export function createTurnShares<Party>(maxPerTurn: number): TurnShares<Party> {
  const counts = new Map<Party, number>();
  const deferred = new Map<Party, (() => void)[]>();
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(startTurn);
  }

  function startTurn(): void {
    isScheduled = false;
    counts.clear();
    for (const [party, works] of [...deferred]) {
      const now = works.splice(0, maxPerTurn);
      if (works.length === 0) deferred.delete(party);
      counts.set(party, now.length);
      schedule();
      for (const work of now) work();
    }
  }

  return {
    run(party, work) {
      const count = counts.get(party) ?? 0;
      schedule();
      if (count < maxPerTurn) {
        counts.set(party, count + 1);
        work();
        return;
      }
      const works = deferred.get(party);
      if (works === undefined) deferred.set(party, [work]);
      else works.push(work);
    },
  };
}
