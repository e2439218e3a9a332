import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestamp, type Violations } from "../../core/messages/violations.ts";
import type { Runner } from "../../core/store/pool.ts";
import {
  AuditEvent_Outcome,
  type AuditEvent as AuditEventMessage,
  AuditEventSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { type PageTokens, pageSize, replyPage, scanUntil } from "./pages.ts";
import {
  type EventCursor,
  type EventFilter,
  findAuditEvents,
  type StoredAuditEvent,
} from "./store/list-audit-events.ts";

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

/** The fields that the responses of both services have. */
interface ListResponse {
  readonly events: AuditEventMessage[];
  readonly nextPageToken: string;
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
export async function listAuditEvents(
  { runner, pageTokens }: { readonly runner: Runner; readonly pageTokens: PageTokens },
  tenant: EventFilter["tenant"],
  request: ListRequest,
  violations: Violations,
): Promise<ListResponse> {
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
