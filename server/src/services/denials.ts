import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { Deadline } from "../domain/deadline.ts";
import type { Refusal } from "../domain/refusal.ts";
import type { Principal } from "../domain/tenant.ts";
import { insertAuditEvents, type NewAuditEvent } from "../store/audit-events.ts";
import { createBatcher } from "../store/batcher.ts";
import type { Runner } from "../store/pool.ts";

/** A call, or one of a batch, that was refused with PERMISSION_DENIED. */
export interface DeniedCall {
  readonly principal: Principal;
  /** The RPC's name. */
  readonly action: string;
  /** Whether it would have changed a tenant's affairs. */
  readonly isChange: boolean;
  readonly refusal: Refusal;
  readonly requestId: string;
}

/** Writes down what was refused for who asked. */
export interface Denials {
  /**
   * Makes an audit event of a denied call: of every change, and of everything else the
   * first one in a minute for each caller, RPC and reason. Returns at once, and never throws; an event that can't be
   * written is in the log.
   */
  note(call: DeniedCall): void;
  /** Resolves once all that was noted has been written, or given up. */
  settled(): Promise<void>;
}

const QUIET_MS = 60_000;
/** Of callers, RPCs and reasons; with more, the oldest are forgotten, and may be written again. */
const MAX_REMEMBERED = 10_000;
const WHATEVER_IT_TAKES: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** @see Denials */
export function createDenials(runner: Runner, log: Logger): Denials {
  // One statement at a time, whoever floods it: denials take no connection from those who are served.
  const writes = createBatcher<NewAuditEvent, undefined>({
    nameOf: ({ requestId, action, target }) => `${requestId} ${action} ${target}`,
    follow: (row) => row,
    maxInFlight: 1,
    async execute(events) {
      await insertAuditEvents(runner, events);
      return events.map(() => undefined);
    },
  });
  const pending = new Set<Promise<void>>();
  const writtenAtMs = new LRUCache<string, number>({ max: MAX_REMEMBERED });

  function isFirstInAWhile({ principal, action, refusal }: DeniedCall): boolean {
    const name = JSON.stringify([principal.actor, action, refusal.reason]);
    const nowMs = performance.now();
    if (nowMs - (writtenAtMs.get(name) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return false;
    writtenAtMs.set(name, nowMs);
    return true;
  }

  return {
    note(call) {
      if (!call.isChange && !isFirstInAWhile(call)) return;
      const write = writes.submit(eventOf(call), WHATEVER_IT_TAKES).catch((error: unknown) => {
        const { action, requestId } = call;
        log.warn({ err: error, action, requestId }, "a denial could not be written to the audit");
      });
      const done = write.then(() => {
        pending.delete(done);
      });
      pending.add(done);
    },
    async settled() {
      await Promise.all(pending);
    },
  };
}

function eventOf({ principal, action, refusal, requestId }: DeniedCall): NewAuditEvent {
  const { namespace } = refusal.metadata;
  return {
    tenant: principal.role === "OPERATOR" ? undefined : principal.tenant,
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
