import type { NewAuditEvent } from "../store/tenants/audit-events.ts";

/** A denied call as an audit event that does not say yet for how many calls it stands. */
export type Denial = Omit<NewAuditEvent, "calls" | "denial"> & { readonly denial: string };

/**
 * Denied calls that were not written yet, counted together where they are alike. What is kept is bounded for each actor, for
 * each tenant and in all: beyond a bound calls are only counted for the actor, for the tenant, or for nobody.
 */
export interface DenialGroups {
  /** Counts a call. A group that it is the first of is due at once, the others once `allDue` was called. */
  add(denial: Denial): void;
  /** Up to so many events of what is due; it no longer is. */
  take(limit: number): readonly NewAuditEvent[];
  /** Keeps what was taken and could not be written, for the next `allDue`. */
  putBack(events: readonly NewAuditEvent[]): void;
  hasDue(): boolean;
  isEmpty(): boolean;
  /** Everything that was counted is due. */
  allDue(): void;
  /** Forgets the groups that have nothing left to be written; the next call of each is the first of its group again. */
  forgetWritten(): void;
}

/** More kinds of denials than an actor comes upon in a minute whose credential is for something else. */
const MAX_OF_ACTOR = 8;
/** Some actors, each with a mistake or two. */
const MAX_OF_TENANT = 64;
/** Some hundred bytes each. */
const MAX_GROUPS = 10_000;

interface Group extends Level {
  calls: number;
}

/** @see DenialGroups */
export function createDenialGroups(): DenialGroups {
  const groups = new Map<string, Group>();
  const due = new Map<string, Group>();
  /** How many groups an actor has, and a tenant. */
  const counts = new Map<string, number>();

  function hasRoom({ bounds }: Level): boolean {
    return groups.size < MAX_GROUPS && bounds.every(([name, limit]) => (counts.get(name) ?? 0) < limit);
  }

  /** The group that a call is counted in: the first one that exists, or that there is room for. */
  function groupOf(denial: Denial): Group {
    for (const level of levelsOf(denial)) {
      const found = groups.get(level.name);
      if (found !== undefined) return found;
      if (level.isLast || hasRoom(level)) return newGroup(level);
    }
    throw new Error("a denial has no last level");
  }

  function newGroup(level: Level): Group {
    const group = { ...level, calls: 0 };
    groups.set(level.name, group);
    due.set(level.name, group);
    for (const [name] of level.bounds) counts.set(name, (counts.get(name) ?? 0) + 1);
    return group;
  }

  function forget({ name, bounds }: Group): void {
    groups.delete(name);
    due.delete(name);
    for (const [bound] of bounds) {
      const left = (counts.get(bound) ?? 0) - 1;
      if (left > 0) counts.set(bound, left);
      else counts.delete(bound);
    }
  }

  return {
    add(denial) {
      groupOf(denial).calls++;
    },
    take(limit) {
      const events: NewAuditEvent[] = [];
      for (const [name, group] of due) {
        if (events.length === limit) break;
        due.delete(name);
        if (group.calls > 0) events.push({ ...group.denial, calls: group.calls });
        group.calls = 0;
      }
      return events;
    },
    putBack(events) {
      for (const { calls, ...denial } of events) {
        const group = groupOf(denial as Denial);
        group.calls += calls;
        due.delete(group.name);
      }
    },
    isEmpty: () => groups.size === 0,
    hasDue: () => due.size > 0,
    allDue() {
      for (const [name, group] of groups) due.set(name, group);
    },
    forgetWritten() {
      for (const group of groups.values()) {
        if (group.calls === 0) forget(group);
      }
    },
  };
}

/** Something that a call can be counted as. */
interface Level {
  readonly name: string;
  /** The event of all calls that are counted as this. */
  readonly denial: Denial;
  /** How many groups there may be of what is named. */
  readonly bounds: readonly (readonly [name: string, limit: number])[];
  /** There is always room: these are as many as there are reasons. */
  readonly isLast: boolean;
}

/** From what says most of a call to what says least. */
function* levelsOf(denial: Denial): Iterable<Level> {
  const { tenant, actor, action, target, denial: reason } = denial;
  const ofTenant = [JSON.stringify([tenant?.id]), MAX_OF_TENANT] as const;
  const ofActor = [JSON.stringify([tenant?.id, actor]), MAX_OF_ACTOR] as const;
  const level = (changes: Partial<Denial>, bounds: Level["bounds"], isLast = false): Level => {
    const event = { ...denial, ...changes };
    const name = JSON.stringify([event.tenant?.id, event.actor, event.action, event.target, reason]);
    return { name, denial: event, bounds, isLast };
  };
  yield level({ action, target }, [ofTenant, ofActor]);
  yield level({ action: "", target: "" }, [ofTenant]);
  yield level({ actor: "", action: "", target: "" }, []);
  yield level({ tenant: undefined, actor: "", action: "", target: "" }, [], true);
}
