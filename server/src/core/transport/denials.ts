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
