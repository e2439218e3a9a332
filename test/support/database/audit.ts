import type { AuditEvent } from "../../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import type { TestTenant } from "../servers/tenants.ts";
import type { TestDatabase } from "./database.ts";

/** The columns of a stored event that tests compare. */
export interface EventRow {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: "DONE" | "DENIED";
  readonly denial: string;
  readonly reason: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly request_id: string;
  readonly calls: number;
}

/** Returns a tenant's audit events, oldest first; only those of one RPC if `action` is given. */
export function eventsOf(database: TestDatabase, { id }: TestTenant, action?: string): Promise<EventRow[]> {
  return database.query<EventRow>(
    `select actor, action, target, outcome, denial, reason, before, after, request_id, calls
       from audit_events where tenant_id = $1 and action = coalesce($2, action) order by at, id`,
    [id, action],
  );
}

/** Returns the RPCs of events, in the events' order. */
export function actionsOf(events: readonly AuditEvent[]): string[] {
  return events.map(({ action }) => action);
}
