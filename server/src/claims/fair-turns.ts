/** Names in lanes, which are taken by turns: one of each lane, then the next of each. */
export interface FairTurns {
  add(lane: number, name: string): void;
  remove(lane: number, name: string): void;
  /** Up to so many names; they come again once all others of their lanes have. */
  next(count: number): readonly string[];
}

/** @see FairTurns */
export function createFairTurns(): FairTurns {
  /** Lanes, and the names in each, in the order in which they come; none is empty. */
  const lanes = new Map<number, Set<string>>();

  return {
    add(lane, name) {
      const names = lanes.get(lane);
      if (names === undefined) lanes.set(lane, new Set([name]));
      else names.add(name);
    },

    remove(lane, name) {
      const names = lanes.get(lane);
      if (names?.delete(name) && names.size === 0) lanes.delete(lane);
    },

    next(count) {
      const begun = first(count, lanes);
      const taken: [names: Set<string>, name: string][] = [];
      let round = begun.map(([, names]) => ({ names, rest: names.values() }));
      while (round.length > 0 && taken.length < count) {
        round = round.filter(({ names, rest }) => {
          const { value, done } = rest.next();
          if (done !== true && taken.length < count) taken.push([names, value]);
          return done !== true;
        });
      }
      for (const [names, name] of taken) {
        names.delete(name);
        names.add(name);
      }
      for (const [lane, names] of begun) {
        lanes.delete(lane);
        lanes.set(lane, names);
      }
      return taken.map(([, name]) => name);
    },
  };
}

/** Up to so many entries, without a list of all. */
function first<Key, Value>(count: number, entries: ReadonlyMap<Key, Value>): [Key, Value][] {
  const found: [Key, Value][] = [];
  for (const entry of entries) {
    if (found.length === count) break;
    found.push(entry);
  }
  return found;
}
