import type { Runner } from "../pool.ts";
import { intArray, textArray } from "../sql-arrays.ts";

/** An event to be stored. It never holds a result, a secret or a record's key; see `tenant.proto`, AuditEvent. */
export interface NewAuditEvent {
  /** Undefined: the event concerns no tenant. */
  readonly tenant: { readonly id: number; readonly name: string } | undefined;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** The reason of the refusal; undefined: the change was made. */
  readonly denial?: string | undefined;
  /** As the caller gave it. */
  readonly reason?: string;
  readonly before?: Snapshot | undefined;
  readonly after?: Snapshot | undefined;
  readonly requestId: string;
  /** How many calls the event stands for. */
  readonly calls: number;
}

/** The changed values, as JSON; without BigInts and Dates. */
export type Snapshot = Readonly<Record<string, JsonValue | undefined>>;

/** A value of JSON. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

const insertEvents = {
  name: "insert_audit_events",
  text: `
insert into audit_events
  (tenant, tenant_id, actor, action, target, outcome, denial, reason, before, after, request_id, calls)
select coalesce(i.tenant, ''), i.tenant_id, i.actor, i.action, i.target,
       case when i.denial is null then 'DONE' else 'DENIED' end, coalesce(i.denial, ''), i.reason,
       i.before::jsonb, i.after::jsonb, i.request_id, i.calls
  from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
              $9::text[], $10::text[], $11::int[])
         as i (tenant, tenant_id, actor, action, target, denial, reason, before, after, request_id, calls)`,
};

/** Stores events, in the transaction of the change that they describe: no change is without its event. */
export async function insertAuditEvents(runner: Runner, events: readonly NewAuditEvent[]): Promise<void> {
  await runner.run(insertEvents, [
    textArray(events.map(({ tenant }) => tenant?.name)),
    intArray(events.map(({ tenant }) => tenant?.id)),
    textArray(events.map(({ actor }) => actor)),
    textArray(events.map(({ action }) => action)),
    textArray(events.map(({ target }) => target)),
    textArray(events.map(({ denial }) => denial)),
    textArray(events.map(({ reason = "" }) => reason)),
    textArray(events.map(({ before }) => before && JSON.stringify(before))),
    textArray(events.map(({ after }) => after && JSON.stringify(after))),
    textArray(events.map(({ requestId }) => requestId)),
    intArray(events.map(({ calls }) => calls)),
  ]);
}
