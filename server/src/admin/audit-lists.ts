import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  AuditEvent_Outcome,
  type AuditEvent as AuditEventMessage,
  AuditEventSchema,
} from "../gen/onceward/v1/tenant_pb.ts";
import type { Violations } from "../messages/violations.ts";
import { timestamp } from "../messages/wire-times.ts";
import type { Runner } from "../store/pool.ts";
import type { EventFilter, EventPlace, StoredAuditEvent } from "../store/tenants/list-audit-events.ts";
import { findAuditEvents } from "../store/tenants/list-audit-events.ts";
import { type PageTokens, pageSize } from "./page-tokens.ts";
import { lookUntil, replyPage } from "./reply-pages.ts";

/** What the requests of both services have in common. */
interface ListRequest {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly after?: Timestamp | undefined;
  readonly before?: Timestamp | undefined;
  readonly action: string;
}

/** What their responses have. */
interface ListResponse {
  readonly events: AuditEventMessage[];
  readonly nextPageToken: string;
}

/** No RPC's name is longer. */
const MAX_ACTION_BYTES = 64;

/**
 * A page of the events of a tenant, or of all, the newest first. `violations` are those that the caller has found.
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
  const filter = {
    tenant,
    afterMs: violations.timestampMs("after", request.after),
    beforeMs: violations.timestampMs("before", request.before),
    action: request.action,
  };
  const scope = ["ListAuditEvents", typeof tenant, tenant, filter.afterMs, filter.beforeMs, filter.action];
  const size = pageSize(request.pageSize, violations);
  const cursor = pageTokens.read(scope, request.pageToken, violations);
  violations.throwIfAny();

  const { items, next } = await lookUntil(
    size + 1,
    cursor && placeOf(cursor),
    async (behind: EventPlace | undefined, count) => {
      const look = await findAuditEvents(runner, filter, behind, count);
      return { items: look.events, next: look.next };
    },
  );
  const { messages, last } = replyPage(items, size, AuditEventSchema, auditEventMessage);
  const onwards = last === undefined ? next : last.place;
  return { events: messages, nextPageToken: onwards === undefined ? "" : pageTokens.write(scope, onwards) };
}

function placeOf([at = "", id = ""]: readonly string[]): EventPlace {
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
