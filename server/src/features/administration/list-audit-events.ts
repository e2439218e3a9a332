import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestamp, Violations } from "../../core/messages/violations.ts";
import type { Runner } from "../../core/store/pool.ts";
import { OperatorServiceListAuditEventsResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { ListAuditEventsResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  AuditEvent_Outcome,
  type AuditEvent as AuditEventMessage,
  AuditEventSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { type PageTokens, pageSize, replyPage, scanUntil } from "./pages.ts";
import type { AdministrationParts, OperatorRpcs, TenantAdminRpcs } from "./services.ts";
import {
  type EventCursor,
  type EventFilter,
  findAuditEvents,
  type StoredAuditEvent,
} from "./store/list-audit-events.ts";
import { administeredTenant } from "./tenant/own-tenant.ts";

/** Returns the RPC for audit events of the caller's tenant, without those of an earlier tenant of the same name. */
export function createListTenantsEvents({
  pool,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"listAuditEvents"> {
  return {
    async listAuditEvents(request, call) {
      const { id } = administeredTenant(call);
      const page = await listEvents({ runner: pool.of(call), pageTokens }, id, request, new Violations());
      return create(ListAuditEventsResponseSchema, page);
    },
  };
}

/** Returns the RPC for audit events of all tenants, or of those of one name. */
export function createListAllEvents({
  pool,
  pageTokens,
}: AdministrationParts): OperatorRpcs<"listAuditEvents"> {
  return {
    async listAuditEvents(request) {
      const violations = new Violations();
      if (request.tenant !== "") violations.name("tenant", request.tenant);
      const tenant = request.tenant || undefined;
      const page = await listEvents({ runner: pool, pageTokens }, tenant, request, violations);
      return create(OperatorServiceListAuditEventsResponseSchema, page);
    },
  };
}

/** The fields that the requests of both services have. */
interface ListRequest {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly after?: Timestamp | undefined;
  readonly before?: Timestamp | undefined;
  readonly action: string;
  readonly actor: string;
  readonly target: string;
  readonly outcome: AuditEvent_Outcome;
}

/** Longer than every RPC's name. */
const MAX_ACTION_BYTES = 64;
/** As long as the subject of a token. */
const MAX_ACTOR_BYTES = 255;
/** Longer than every resource's name. */
const MAX_TARGET_BYTES = 1024;

/**
 * Returns a page of the events of a tenant, or of all tenants, newest first. `violations` has those that the caller found.
 *
 * @throws Refusal INVALID_REQUEST with every violation.
 */
async function listEvents(
  { runner, pageTokens }: { readonly runner: Runner; readonly pageTokens: PageTokens },
  tenant: EventFilter["tenant"],
  request: ListRequest,
  violations: Violations,
): Promise<{ readonly events: AuditEventMessage[]; readonly nextPageToken: string }> {
  violations.text("action", request.action, { maxBytes: MAX_ACTION_BYTES });
  violations.text("actor", request.actor, { maxBytes: MAX_ACTOR_BYTES });
  violations.text("target", request.target, { maxBytes: MAX_TARGET_BYTES });
  const filter = {
    tenant,
    afterMs: violations.timestampMs("after", request.after),
    beforeMs: violations.timestampMs("before", request.before),
    action: request.action,
    actor: request.actor,
    target: request.target,
    denied: parseOutcome(request.outcome, violations),
  };
  const { afterMs, beforeMs, action, actor, target, denied } = filter;
  const scope = [
    ...["ListAuditEvents", typeof tenant, tenant, afterMs, beforeMs, action, actor, target],
    denied === undefined ? undefined : String(denied),
  ];
  const size = pageSize(request.pageSize, violations);
  const cursor = pageTokens.read(scope, request.pageToken, violations);
  violations.throwIfAny();

  const { items, next } = await scanUntil(
    size + 1,
    cursor && cursorOf(cursor),
    async (after: EventCursor | undefined, count) => {
      const scan = await findAuditEvents(runner, filter, after, count);
      return { items: scan.events, next: scan.next };
    },
  );
  const { messages, last } = replyPage(items, size, AuditEventSchema, auditEventMessage);
  const end = last === undefined ? next : last.cursor;
  return { events: messages, nextPageToken: end === undefined ? "" : pageTokens.write(scope, end) };
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

function cursorOf([at = "", id = ""]: readonly string[]): EventCursor {
  return [at, id];
}

function auditEventMessage(event: StoredAuditEvent): AuditEventMessage {
  const { id, tenant, actor, action, target, denial, reason, before, after, requestId, calls } = event;
  return create(AuditEventSchema, {
    id,
    at: timestamp(event.atMs),
    tenant,
    actor,
    action,
    target,
    outcome: denial === "" ? AuditEvent_Outcome.DONE : AuditEvent_Outcome.DENIED,
    denial,
    reason,
    ...(before && { before: before as JsonObject }),
    ...(after && { after: after as JsonObject }),
    requestId,
    calls,
  });
}
