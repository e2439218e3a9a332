import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import type { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import type { Runner } from "../store/pool.ts";
import { insertAuditEvents } from "../store/tenants/audit-events.ts";
import { createDenialGroups, type Denial } from "./denial-groups.ts";

/** A call, or one of a batch, that was refused with PERMISSION_DENIED. */
export interface DeniedCall {
  readonly principal: Principal;
  /** The RPC's name. */
  readonly action: string;
  readonly refusal: Refusal;
  readonly requestId: string;
}

/** Writes audit events of denied calls. */
export interface Denials {
  /**
   * Counts a denied call. The first one of a tenant, actor, RPC, target and reason is an audit event at once; those that follow
   * within a minute are one event together, with their number. Returns at once, and never throws; what can't be written is in the
   * log, and tried again a minute later.
   */
  note(call: DeniedCall): void;
  /** Resolves once all that was noted has been written, or given up. */
  settled(): Promise<void>;
}

const WINDOW_MS = 60_000;
/** Of one statement. */
const MAX_EVENTS = 500;

/** @see Denials */
export function createDenials(runner: Runner, log: Logger, windowMs = WINDOW_MS): Denials {
  const groups = createDenialGroups();
  let writing: Promise<void> | undefined;
  let window: NodeJS.Timeout | undefined;

  // One statement at a time, however many are denied: they take no connection from callers that are served.
  function write(): Promise<void> {
    writing ??= writeDue().finally(() => {
      writing = undefined;
      if (groups.hasDue()) void write();
    });
    return writing;
  }

  async function writeDue(): Promise<void> {
    // What was denied in this turn of the event loop travels together.
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
    note(call) {
      groups.add(denialOf(call));
      if (groups.hasDue()) void write();
      startWindow();
    },
    async settled() {
      clearTimeout(window);
      await writeAll();
    },
  };
}

function denialOf({ principal, action, refusal, requestId }: DeniedCall): Denial {
  const { namespace } = refusal.metadata;
  return {
    tenant:
      principal.role === "OPERATOR" ? undefined : { id: principal.tenant.id, name: principal.tenant.name },
    actor: principal.actor,
    action,
    target: namespace === undefined ? "" : `namespace ${namespace}`,
    denial: refusal.reason,
    reason: "",
    before: undefined,
    after: undefined,
    requestId,
  };
}
