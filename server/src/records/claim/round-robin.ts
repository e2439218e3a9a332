/**
 * Creates an empty rotation of names in groups. Groups are served in turn: one name of each group, then the next name of each.
 */
export function createRoundRobin() {
  /** Groups, and the names of each, in the order in which they are served; none is empty. */
  const groups = new Map<number, Set<string>>();

  return {
    add(group: number, name: string): void {
      const names = groups.get(group);
      if (names === undefined) groups.set(group, new Set([name]));
      else names.add(name);
    },

    remove(group: number, name: string): void {
      const names = groups.get(group);
      if (names?.delete(name) && names.size === 0) groups.delete(group);
    },

    /** Returns at most `count` names. A name is returned again after all others of its group. */
    next(count: number): readonly string[] {
      const served = first(count, groups);
      const taken: [names: Set<string>, name: string][] = [];
      let round = served.map(([, names]) => ({ names, rest: names.values() }));
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
      for (const [group, names] of served) {
        groups.delete(group);
        groups.set(group, names);
      }
      return taken.map(([, name]) => name);
    },
  };
}

/** Returns the first `count` entries, without a list of all. */
function first<Key, Value>(count: number, entries: ReadonlyMap<Key, Value>): [Key, Value][] {
  const found: [Key, Value][] = [];
  for (const entry of entries) {
    if (found.length === count) break;
    found.push(entry);
  }
  return found;
}
