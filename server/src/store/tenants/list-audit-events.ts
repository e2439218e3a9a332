import type { Runner } from "../pool.ts";
import type { JsonValue } from "./audit-events.ts";

/** An event as it was written. The instant is milliseconds since the Unix epoch. */
export interface StoredAuditEvent {
  readonly id: bigint;
  readonly atMs: number;
  /** Empty: it concerned no tenant. */
  readonly tenant: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** Empty: it was done. */
  readonly denial: string;
  readonly reason: string;
  readonly before: JsonObject | undefined;
  readonly after: JsonObject | undefined;
  readonly requestId: string;
  /** How many calls it stands for. */
  readonly calls: number;
  readonly place: EventPlace;
}

type JsonObject = { [name: string]: JsonValue };

/** An event's moment, to the microsecond, and its id. */
export type EventPlace = readonly [at: string, id: string];

/** Which events are wanted. Instants are milliseconds since the Unix epoch. */
export interface EventFilter {
  /** A tenant by its id; by its name, which may be that of several after another; or undefined: all. */
  readonly tenant: number | string | undefined;
  readonly afterMs: number | undefined;
  readonly beforeMs: number | undefined;
  /** Empty: all. */
  readonly action: string;
}

/** What was found among a bounded number of events. */
export interface EventLook {
  readonly events: readonly StoredAuditEvent[];
  /** Behind which the next look begins; undefined: every event was looked at. */
  readonly next: EventPlace | undefined;
}

/** Some milliseconds for one statement, also where none of them is wanted. */
const MAX_LOOKED_AT = 5000;

/** A range of an index that begins with the tenant, if one is asked for; what no index knows is told from what it finds. */
function lookAtEvents(name: string, ofTenant: string) {
  return {
    name,
    text: `
with looked as materialized (
  select id, at, $2::text = '' or action = $2::text as wanted
    from audit_events
   where ${ofTenant}
     and at >= coalesce(to_timestamp($3::float8 / 1000), '-infinity')
     and at < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
     and (at, id) < ($5::timestamptz, $6::bigint)
   order by at desc, id desc
   limit ${MAX_LOOKED_AT}
), found as (
  select id, at, wanted from looked where wanted order by at desc, id desc limit $7::int
), last as (
  select id, at, wanted from looked order by at, id limit 1
)
select f.wanted, (select count(*) from looked)::int as looked_at, e.id, e.at::text as at,
       date_part('epoch', e.at) * 1000 as at_ms, e.tenant, e.actor, e.action, e.target, e.denial, e.reason, e.before,
       e.after, e.request_id, e.calls
  from (select * from found union all select * from last where not wanted) f
 cross join lateral (select * from audit_events event where event.id = f.id limit 1) e
 order by e.at desc, e.id desc`,
  };
}

const STATEMENTS = {
  number: lookAtEvents("look_at_audit_events_of_tenant", "tenant_id = $1::int"),
  string: lookAtEvents("look_at_audit_events_of_tenant_name", "tenant = $1::text"),
  undefined: lookAtEvents("look_at_audit_events", "$1::int is null"),
} as const;

interface Row {
  readonly wanted: boolean;
  readonly looked_at: number;
  readonly id: string;
  readonly at: string;
  readonly at_ms: number;
  readonly tenant: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly denial: string;
  readonly reason: string;
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  readonly request_id: string;
  readonly calls: number;
}

const BEFORE_ALL: EventPlace = ["infinity", "0"];

/** The newest events behind a place that are wanted, up to `limit`; looks at a bounded number. */
export async function findAuditEvents(
  runner: Runner,
  { tenant, afterMs, beforeMs, action }: EventFilter,
  behind: EventPlace = BEFORE_ALL,
  limit: number,
): Promise<EventLook> {
  const rows = await runner.run<Row>(STATEMENTS[typeof tenant as keyof typeof STATEMENTS], [
    tenant ?? null,
    action,
    afterMs ?? null,
    beforeMs ?? null,
    ...behind,
    limit,
  ]);
  const events = rows.filter((row) => row.wanted).map(parse);
  const wasFull = events.length === limit || rows[0]?.looked_at === MAX_LOOKED_AT;
  const last = events.length === limit ? events.at(-1)?.place : placeOf(rows.at(-1));
  return { events, next: wasFull ? last : undefined };
}

function placeOf(row: Row | undefined): EventPlace | undefined {
  return row && [row.at, row.id];
}

function parse(row: Row): StoredAuditEvent {
  return {
    id: BigInt(row.id),
    atMs: row.at_ms,
    tenant: row.tenant,
    actor: row.actor,
    action: row.action,
    target: row.target,
    denial: row.denial,
    reason: row.reason,
    before: row.before ?? undefined,
    after: row.after ?? undefined,
    requestId: row.request_id,
    calls: row.calls,
    place: [row.at, row.id],
  };
}
