import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import {
  MAX_AUDIT_ACTION_BYTES,
  MAX_AUDIT_ACTOR_BYTES,
  MAX_AUDIT_TARGET_BYTES,
} from "../../domain/limits.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import { OperatorServiceListAuditEventsResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import {
  type ListAuditEventsRequest,
  ListAuditEventsResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  AuditEvent_Outcome,
  type AuditEvent as AuditEventMessage,
  AuditEventSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { administeredTenant } from "../own-tenant.ts";
import { type Cursor, type PageTokens, type Scan, scanPage, scanUntil } from "../pages.ts";
import type { OperatorRpc, TenantRpc } from "../services.ts";

/** Returns a page of the audit events of the caller's tenant, without those of an earlier tenant of the same name. */
export const listAuditEvents: TenantRpc<"listAuditEvents"> = async (request, call, { pool, pageTokens }) => {
  const { id } = administeredTenant(call);
  const page = await listEvents(pool.of(call), pageTokens, id, request, new Violations());
  return create(ListAuditEventsResponseSchema, page);
};

/** Returns a page of the audit events of all tenants, or of those of one name. */
export const listAllAuditEvents: OperatorRpc<"listAuditEvents"> = async (request, _call, parts) => {
  const { pool, pageTokens } = parts;
  const violations = new Violations();
  if (request.tenant !== "") violations.name("tenant", request.tenant);
  const tenant = request.tenant || undefined;
  const page = await listEvents(pool, pageTokens, tenant, request, violations);
  return create(OperatorServiceListAuditEventsResponseSchema, page);
};

/**
 * Returns a page of the events of a tenant, or of all tenants, newest first. `violations` has those that the caller found.
 *
 * @throws Refusal INVALID_REQUEST with every violation.
 */
async function listEvents(
  runner: Runner,
  pageTokens: PageTokens,
  tenant: EventFilter["tenant"],
  request: Omit<ListAuditEventsRequest, "$typeName" | "$unknown">,
  violations: Violations,
): Promise<{ readonly events: AuditEventMessage[]; readonly nextPageToken: string }> {
  const { action, actor, target } = request;
  violations.text("action", action, { maxBytes: MAX_AUDIT_ACTION_BYTES });
  violations.text("actor", actor, { maxBytes: MAX_AUDIT_ACTOR_BYTES });
  violations.text("target", target, { maxBytes: MAX_AUDIT_TARGET_BYTES });
  const afterMs = violations.timestampMs("after", request.after);
  const beforeMs = violations.timestampMs("before", request.before);
  const denied = parseOutcome(request.outcome, violations);
  const { withoutSignIns } = request;
  const filter = { tenant, afterMs, beforeMs, action, actor, target, denied, withoutSignIns };
  const { messages, nextPageToken } = await scanPage(
    request,
    {
      pageTokens,
      scope: [
        ...["ListAuditEvents", typeof tenant, tenant, afterMs, beforeMs, action, actor, target],
        denied === undefined ? undefined : String(denied),
        String(withoutSignIns),
      ],
      schema: AuditEventSchema,
      find: (behind, limit) =>
        scanUntil(limit, behind, (after: Cursor, count) => findAuditEvents(runner, filter, after, count)),
      messageOf: auditEventMessage,
      cursorOf,
    },
    violations,
  );
  return { events: messages, nextPageToken };
}

/** Returns whether events of denied calls are listed, or those of changes that were made; undefined: both. */
function parseOutcome(outcome: AuditEvent_Outcome, violations: Violations): boolean | undefined {
  switch (outcome) {
    case AuditEvent_Outcome.UNSPECIFIED:
      return undefined;
    case AuditEvent_Outcome.DONE:
      return false;
    case AuditEvent_Outcome.DENIED:
      return true;
    default:
      violations.add("outcome", "must be an outcome of an event");
      return undefined;
  }
}

function auditEventMessage({ wanted, scanned, id, at, atMs, before, after, ...event }: EventRow) {
  return create(AuditEventSchema, {
    ...event,
    id: BigInt(id),
    at: timestamp(atMs),
    outcome: event.denial === "" ? AuditEvent_Outcome.DONE : AuditEvent_Outcome.DENIED,
    before: before ?? undefined,
    after: after ?? undefined,
  });
}

/** A position in the list of events: an event's instant, to the microsecond, and its id. */
function cursorOf({ at, id }: EventRow): Cursor {
  return [at, id];
}

/** Selects events. Instants are milliseconds since the Unix epoch. */
interface EventFilter {
  /** A tenant's id; or a name, which several tenants may have had one after another; or undefined: all tenants. */
  readonly tenant: number | string | undefined;
  readonly afterMs: number | undefined;
  readonly beforeMs: number | undefined;
  /** Empty: all. */
  readonly action: string;
  /** Empty: all. */
  readonly actor: string;
  /** Empty: all. */
  readonly target: string;
  /** Undefined: denied or not. */
  readonly denied: boolean | undefined;
  readonly withoutSignIns: boolean;
}

/** Events that one statement scans, in some milliseconds even where none matches. */
const MAX_SCANNED = 5000;

/**
 * Returns a statement that scans a range of the index that begins with the tenant, if one is given. The other
 * conditions are compared row by row.
 *
 * @param seen which API keys `k` the reader of event `e` may see the labels of.
 */
function scanStatement(name: string, ofTenant: string, seen = "true") {
  return {
    name,
    text: `
with page as materialized (
  select id, at,
         ($2::text = '' or action = $2::text)
           and ($8::text = '' or actor = $8::text)
           and ($9::text = '' or target = $9::text)
           and coalesce($10::boolean, outcome = 'DENIED') = (outcome = 'DENIED')
           and not ($11::boolean and action in ('SignIn', 'SignOut', 'SignOutEverywhere')) as wanted
    from audit_events
   where ${ofTenant}
     and at >= coalesce(to_timestamp($3::float8 / 1000), '-infinity')
     and at < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
     and (at, id) < ($5::timestamptz, $6::bigint)
   order by at desc, id desc
   limit ${MAX_SCANNED}
), found as (
  select id, at, wanted from page where wanted order by at desc, id desc limit $7::int
), last as (
  select id, at, wanted from page order by at, id limit 1
)
select f.wanted, (select count(*) from page)::int as scanned, e.id, to_jsonb(e.at) #>> '{}' as at,
       extract(epoch from e.at) * 1000 as "atMs", e.tenant, e.actor, e.action, e.target, e.denial, e.reason, e.before,
       e.after, e.request_id as "requestId", e.calls,
       coalesce((select k.label from api_keys k where k.id = e.actor and ${seen} offset 0), '') as "actorLabel"
  from (select * from found union all select * from last where not wanted) f
 cross join lateral (select * from audit_events event where event.id = f.id limit 1) e
 order by e.at desc, e.id desc`,
  };
}

const STATEMENTS = {
  number: scanStatement("scan_audit_events_of_tenant", "tenant_id = $1::int", "k.tenant_id = $1::int"),
  string: scanStatement("scan_audit_events_of_tenant_name", "tenant = $1::text"),
  undefined: scanStatement("scan_audit_events", "$1::int is null"),
} as const;

/** A stored event. */
interface EventRow {
  /** Whether the filter selects it: the last of a scan stands for those after it in any case. */
  readonly wanted: boolean;
  /** How many events the statement scanned. */
  readonly scanned: number;
  readonly id: string;
  readonly at: string;
  /** The same in milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** Empty: the event concerned no tenant. */
  readonly tenant: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** The reason of the refusal; empty: the change was made. */
  readonly denial: string;
  readonly reason: string;
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  readonly requestId: string;
  /** How many calls the event stands for. */
  readonly calls: number;
  /** Empty: the actor has none, or the reader may not see it. */
  readonly actorLabel: string;
}

/**
 * Scans a bounded number of events after a cursor, newest first. Returns at most `limit` that match, and where the next scan
 * continues; undefined: there are no more events.
 */
export async function findAuditEvents(
  runner: Runner,
  { tenant, afterMs, beforeMs, action, actor, target, denied, withoutSignIns }: EventFilter,
  [at = "infinity", id = "0"]: Cursor,
  limit: number,
): Promise<Scan<EventRow, Cursor>> {
  const rows = await runner.run<EventRow>(STATEMENTS[typeof tenant as keyof typeof STATEMENTS], [
    tenant ?? null,
    action,
    afterMs ?? null,
    beforeMs ?? null,
    at,
    id,
    limit,
    actor,
    target,
    denied ?? null,
    withoutSignIns,
  ]);
  const items = rows.filter(({ wanted }) => wanted);
  const wasFull = items.length === limit || rows[0]?.scanned === MAX_SCANNED;
  const last = items.length === limit ? items.at(-1) : rows.at(-1);
  return { items, next: wasFull && last !== undefined ? cursorOf(last) : undefined };
}
