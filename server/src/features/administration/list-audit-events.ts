import { create } from "@bufbuild/protobuf";
import { timestamp, Violations } from "../../core/messages/violations.ts";
import type { Runner } from "../../core/store/pool.ts";
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
import { type Cursor, type PageTokens, scanPage, scanUntil } from "./pages.ts";
import type { AdministrationParts, OperatorRpcs, TenantAdminRpcs } from "./services.ts";
import { type EventFilter, findAuditEvents, type StoredAuditEvent } from "./store/list-audit-events.ts";
import { administeredTenant } from "./tenant/own-tenant.ts";

/** Returns the RPC for audit events of the caller's tenant, without those of an earlier tenant of the same name. */
export function createListTenantsEvents({
  pool,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"listAuditEvents"> {
  return {
    async listAuditEvents(request, call) {
      const { id } = administeredTenant(call);
      const page = await listEvents(pool.of(call), pageTokens, id, request, new Violations());
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
      const page = await listEvents(pool, pageTokens, tenant, request, violations);
      return create(OperatorServiceListAuditEventsResponseSchema, page);
    },
  };
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
  runner: Runner,
  pageTokens: PageTokens,
  tenant: EventFilter["tenant"],
  request: Omit<ListAuditEventsRequest, "$typeName" | "$unknown">,
  violations: Violations,
): Promise<{ readonly events: AuditEventMessage[]; readonly nextPageToken: string }> {
  const { action, actor, target } = request;
  violations.text("action", action, { maxBytes: MAX_ACTION_BYTES });
  violations.text("actor", actor, { maxBytes: MAX_ACTOR_BYTES });
  violations.text("target", target, { maxBytes: MAX_TARGET_BYTES });
  const afterMs = violations.timestampMs("after", request.after);
  const beforeMs = violations.timestampMs("before", request.before);
  const denied = parseOutcome(request.outcome, violations);
  const filter = { tenant, afterMs, beforeMs, action, actor, target, denied };
  const { messages, nextPageToken } = await scanPage(
    request,
    {
      pageTokens,
      scope: [
        ...["ListAuditEvents", typeof tenant, tenant, afterMs, beforeMs, action, actor, target],
        denied === undefined ? undefined : String(denied),
      ],
      schema: AuditEventSchema,
      find: (behind, limit) =>
        scanUntil(limit, behind, ([at, id = ""]: Cursor, count) =>
          findAuditEvents(runner, filter, at === undefined ? undefined : [at, id], count),
        ),
      messageOf: auditEventMessage,
      cursorOf: ({ cursor }) => cursor,
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

function auditEventMessage({ atMs, cursor, ...event }: StoredAuditEvent): AuditEventMessage {
  const outcome = event.denial === "" ? AuditEvent_Outcome.DONE : AuditEvent_Outcome.DENIED;
  return create(AuditEventSchema, { ...event, at: timestamp(atMs), outcome });
}
