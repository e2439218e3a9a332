import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../calls/authority.ts";
import type { Handlers } from "../../calls/call.ts";
import { parseLookup } from "../../claims/requests.ts";
import { onlyValue } from "../../domain/operation.ts";
import { type LiveRecord, recordName } from "../../domain/record.ts";
import { Refusal } from "../../domain/refusal.ts";
import { type ResolveCommand, recordToChange } from "../../domain/resolution.ts";
import { RecordSchema } from "../../gen/onceward/v1/record_pb.ts";
import {
  GetRecordResponseSchema,
  ListRecordsResponseSchema,
  ResolveRecordResponseSchema,
  type TenantAdminService,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordMessage } from "../../messages/record-messages.ts";
import { Violations } from "../../messages/violations.ts";
import { withPayload } from "../../store/records/large-payloads.ts";
import { cursorBehind, findRecords, type RecordCursor, startOf } from "../../store/records/list-records.ts";
import { lockRecord, resolveRecord } from "../../store/records/resolve-record.ts";
import type { Snapshot } from "../../store/tenants/audit-events.ts";
import { recordChange } from "../audited-change.ts";
import { pageSize, replyPage, scanUntil } from "../pages.ts";
import { createRecordTarget } from "../record-targets.ts";
import type { TenantAdminOptions } from "./options.ts";
import { parseRecordFilter, parseResolve } from "./record-requests.ts";

/** Returns the RPCs for records. */
export function createRecordHandlers({
  pool,
  records,
  pageTokens,
  changes,
  pepper,
  onSettled,
}: TenantAdminOptions): Pick<
  Handlers<typeof TenantAdminService>,
  "listRecords" | "getRecord" | "resolveRecord"
> {
  const recordTarget = createRecordTarget(pepper);

  return {
    async listRecords(request, call) {
      const violations = new Violations();
      const filter = parseRecordFilter(request, call, violations);
      const { tenantId, namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs } = filter;
      const scope = [tenantId, "ListRecords", namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs];
      const size = pageSize(request.pageSize, violations);
      const cursor = pageTokens.read(scope, request.pageToken, violations);
      violations.throwIfAny();

      const from = cursor === undefined ? startOf(filter) : placeOf(cursor);
      const { items, next } = await scanUntil(size + 1, from, async (start: RecordCursor, count) => {
        const scan = await findRecords(pool.of(call), filter, start, count);
        return { items: scan.records, next: scan.next };
      });
      const { messages, last } = replyPage(items, size, RecordSchema, recordMessage);
      const end = last === undefined ? next : cursorBehind(last.id);
      return create(ListRecordsResponseSchema, {
        records: messages,
        ...(end && { nextPageToken: pageTokens.write(scope, [end.namespace, end.key]) }),
      });
    },

    async getRecord(request, call) {
      const record = onlyValue(await records.read([parseLookup(request, call.principal)], call));
      if (record === undefined) {
        throw new Refusal(
          "RECORD_NOT_FOUND",
          "There is no such record: the key was never claimed, or its retention has ended.",
        );
      }
      return create(GetRecordResponseSchema, { record: recordMessage(record) });
    },

    async resolveRecord(request, call) {
      await loadPolicies([request.namespace], call);
      const command = parseResolve(request, call);
      const record = await pool.of(call).transaction(async (transaction) => {
        const locked = await lockRecord(transaction, command.id);
        const was = recordToChange(locked, command);
        if (was === undefined) return locked;
        const became = await resolveRecord(transaction, command.id, command.resolution, command.reason);
        await recordChange(transaction, call, {
          action: "ResolveRecord",
          target: recordTarget(command.id),
          reason: command.reason,
          before: recordSnapshot(was),
          ...(became && { after: recordSnapshot(became) }),
        });
        return became;
      });
      // Forgetting raised the tenant's generation, which invalidates its cached completions.
      changes.tenantChanged(command.id.tenantId);
      onSettled(recordName(command.id));
      return create(ResolveRecordResponseSchema, record && { record: replyRecord(record, command) });
    },
  };
}

function placeOf([namespace = "", key = ""]: readonly string[]): RecordCursor {
  return { namespace, key };
}

/** Returns the record with the payload of the request where the database did not return the result's payload. */
function replyRecord(record: LiveRecord, { resolution }: ResolveCommand) {
  const payload = resolution.kind === "complete" ? resolution.result.payload : undefined;
  return recordMessage(payload === undefined ? record : withPayload(record, payload));
}

/** Returns the parts of a record that audit events may show: neither its key nor its result. */
function recordSnapshot({ phase, fencingToken, attempt, owner }: LiveRecord): Snapshot {
  return { state: phase.kind, fencingToken: String(fencingToken), attempt, owner };
}
