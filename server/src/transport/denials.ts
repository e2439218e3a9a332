import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import type { Runner } from "../database/pool.ts";
import { insertAuditEvents, type NewAuditEvent } from "../database/tenants/audit-events.ts";
import type { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";

/** A call, or one of a batch, that was refused with PERMISSION_DENIED. */
export interface DeniedCall {
  readonly principal: Principal;
  /** The name of the RPC. */
  readonly action: string;
  readonly refusal: Refusal;
  readonly requestId: string;
}

/** Writes audit events of denied calls. */
export type Denials = ReturnType<typeof createDenials>;

const WINDOW_MS = 60_000;
/** Events of one statement. */
const MAX_EVENTS = 500;

/** Creates the audit of denied calls. */
export function createDenials(runner: Runner, log: Logger, windowMs = WINDOW_MS) {
  const groups = createDenialGroups();
  let writing: Promise<void> | undefined;
  let window: NodeJS.Timeout | undefined;

  // One statement at a time, however many calls are denied, so that they use one connection at most.
  function write(): Promise<void> {
    writing ??= writeDue().finally(() => {
      writing = undefined;
      if (groups.hasDue()) void write();
    });
    return writing;
  }

  async function writeDue(): Promise<void> {
    // Calls that are denied in the same turn of the event loop share a statement.
    await nextTurn();
    while (groups.hasDue()) {
      const events = groups.take(MAX_EVENTS);
      if (events.length === 0) continue;
      try {
        await insertAuditEvents(runner, events);
      } catch (error) {
        groups.putBack(events);
        log.warn({ err: error, events: events.length }, "denials could not be written to the audit");
      }
    }
  }

  async function writeAll(): Promise<void> {
    await writing;
    groups.allDue();
    await write();
  }

  function startWindow(): void {
    window ??= setTimeout(async () => {
      await writeAll();
      groups.forgetWritten();
      window = undefined;
      if (!groups.isEmpty()) startWindow();
    }, windowMs).unref();
  }

  return {
    /**
     * Counts a denied call. The first one of a tenant, actor, RPC, target and reason becomes an audit event
     * immediately; those of the following minute become one event with their number. Returns immediately and
     * never throws; a failed write is logged, and retried a minute later.
     */
    note(call: DeniedCall): void {
      groups.add(denialOf(call));
      if (groups.hasDue()) void write();
      startWindow();
    },
    /** Resolves when all denied calls are written, or their last write has failed. */
    async settled(): Promise<void> {
      clearTimeout(window);
      await writeAll();
    },
  };
}

function denialOf({ principal, action, refusal, requestId }: DeniedCall): Denial {
  const { namespace } = refusal.metadata;
  return {
    tenant: principal.role === "OPERATOR" ? undefined : principal.tenant,
    actor: principal.actor,
    action,
    target: namespace === undefined ? "" : `namespace ${namespace}`,
    denial: refusal.reason,
    requestId,
  };
}

/** The audit event of a denied call, without the number of calls that it stands for. */
export type Denial = Omit<NewAuditEvent, "calls" | "denial"> & { readonly denial: string };

/** More kinds of denials than an actor with the wrong credential causes in a minute. */
const MAX_OF_ACTOR = 8;
/** Enough for several actors that each make a mistake or two. */
const MAX_OF_TENANT = 64;
/** A group takes some hundred bytes. */
const MAX_GROUPS = 10_000;

interface Group extends Level {
  calls: number;
}

/**
 * Counts denied calls that are not written yet, in groups of equal ones. The number of groups is limited for
 * each actor, for each tenant and in total: beyond a limit, calls are only counted for the actor, for the
 * tenant, or for the whole installation.
 */
export function createDenialGroups() {
  const groups = new Map<string, Group>();
  const due = new Map<string, Group>();
  /** The number of groups of each actor and of each tenant. */
  const counts = new Map<string, number>();

  function hasRoom({ bounds }: Level): boolean {
    return groups.size < MAX_GROUPS && bounds.every(([name, limit]) => (counts.get(name) ?? 0) < limit);
  }

  /**
   * Returns the group that counts a call: the most detailed one that exists already, or that the limits
   * allow.
   */
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
    /** Counts a call. The first call of a group makes the group due; the next ones are due after `allDue`. */
    add(denial: Denial): void {
      groupOf(denial).calls++;
    },
    /** Returns up to `limit` events of groups that are due; those groups are then no longer due. */
    take(limit: number): readonly NewAuditEvent[] {
      const events: NewAuditEvent[] = [];
      for (const [name, group] of due) {
        if (events.length === limit) break;
        due.delete(name);
        if (group.calls > 0) events.push({ ...group.denial, calls: group.calls });
        group.calls = 0;
      }
      return events;
    },
    /** Counts events again that could not be written, until the next `allDue`. */
    putBack(events: readonly NewAuditEvent[]): void {
      for (const { calls, ...denial } of events) {
        const group = groupOf(denial as Denial);
        group.calls += calls;
        due.delete(group.name);
      }
    },
    isEmpty: () => groups.size === 0,
    hasDue: () => due.size > 0,
    /** Makes all groups due. */
    allDue(): void {
      for (const [name, group] of groups) due.set(name, group);
    },
    /**
     * Removes the groups whose calls are all written; the next call of such a group is the first of a new one.
     */
    forgetWritten(): void {
      for (const group of groups.values()) {
        if (group.calls === 0) forget(group);
      }
    },
  };
}

/** A level of detail at which a call can be counted. */
interface Level {
  readonly name: string;
  /** The event of all calls that are counted at this level under this name. */
  readonly denial: Denial;
  /** The limits of groups of an actor or a tenant, by their names in `counts`. */
  readonly bounds: readonly (readonly [name: string, limit: number])[];
  /** Not limited: there is one group for each reason. */
  readonly isLast: boolean;
}

/** Yields the levels of a call, the most detailed one first. */
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
