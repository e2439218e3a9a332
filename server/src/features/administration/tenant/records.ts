import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../../core/calls/authority.ts";
import type { Handlers } from "../../../core/calls/call.ts";
import { parseLookup } from "../../../core/claims/messages.ts";
import { attemptsOf } from "../../../core/domain/attempt.ts";
import { onlyValue } from "../../../core/domain/operation.ts";
import { type LiveRecord, recordName } from "../../../core/domain/record.ts";
import { createRecordTarget } from "../../../core/domain/record-target.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import { attemptMessage, recordMessage } from "../../../core/messages/record-messages.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { withResult } from "../../../core/store/records/large-results.ts";
import { withoutValues } from "../../../core/store/records/record-row.ts";
import type { Snapshot } from "../../../core/store/tenants/audit-events.ts";
import { RecordSchema } from "../../../gen/onceward/v1/record_pb.ts";
import {
  GetRecordResponseSchema,
  ListRecordsResponseSchema,
  ResolveRecordResponseSchema,
  type TenantAdminService,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { type ResolveCommand, recordToChange } from "../../jobs/resolution.ts";
import {
  type AmbiguousCursor,
  BEFORE_ALL_AMBIGUOUS,
  findAmbiguous,
} from "../../jobs/store/list-ambiguous.ts";
import {
  cursorBehind,
  findRecords,
  type RecordCursor,
  type RecordFilter,
  startOf,
} from "../../jobs/store/list-records.ts";
import { lockRecord, resolveRecord } from "../../jobs/store/resolve-record.ts";
import { recordChange } from "../audited-change.ts";
import { type Cursor, pageSize, replyPage, type Scope, scanUntil } from "../pages.ts";
import { findKey } from "../store/find-key.ts";
import { readAttempts } from "../store/read-attempts.ts";
import type { TenantAdminOptions } from "./options.ts";
import { parseRecordFilter, parseRecordOrder, parseResolve, type RecordOrder } from "./record-requests.ts";

/** Returns the RPCs for records. */
export function createRecordHandlers({
  pool,
  records,
  pageTokens,
  changes,
  encryption,
  databaseClock,
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
      const order = parseRecordOrder(request, violations);
      const scope = listScope(filter, order);
      const size = pageSize(request.pageSize, violations);
      const cursor = pageTokens.read(scope, request.pageToken, violations);
      violations.throwIfAny();

      const { start, find } = ORDERS[order];
      const { items, next } = await scanUntil(size + 1, cursor ?? start(filter), (from: Cursor, count) =>
        find(pool.of(call), filter, from, count),
      );
      const { messages, last } = replyPage(items, size, RecordSchema, ({ record }) => recordMessage(record));
      const end = last === undefined ? next : last.end;
      return create(ListRecordsResponseSchema, {
        records: messages,
        ...(end && { nextPageToken: pageTokens.write(scope, end) }),
      });
    },

    async getRecord(request, call) {
      const id = parseLookup(request, call.principal);
      const record = onlyValue(await records.read([id], call));
      if (record === undefined) {
        throw new Refusal(
          "RECORD_NOT_FOUND",
          "There is no such record: the key was never claimed, or its retention has ended.",
          { metadata: { audit_target: recordTarget(id) } },
        );
      }
      // Read after the record, so that no attempt is missing that ended before the record was read.
      const attempts = attemptsOf(record, await readAttempts(pool.of(call), id));
      return create(GetRecordResponseSchema, {
        record: recordMessage(record),
        attempts: attempts.map(attemptMessage),
        auditTarget: recordTarget(id),
      });
    },

    async resolveRecord(request, call) {
      await loadPolicies([request.namespace], call);
      const command = parseResolve(request, call);
      const record = await pool.of(call).transaction(async (transaction) => {
        // A record that cannot be decrypted can be forgotten.
        const openRow = command.resolution.kind === "forget" ? withoutValues : encryption.openRow;
        const locked = await lockRecord(transaction, command.id, openRow, databaseClock.latestMs());
        const was = recordToChange(locked, command);
        if (was === undefined) return locked;
        const became = await resolveRecord(transaction, command, encryption);
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

/** How the records of a list are searched in an order. */
interface OrderedSearch {
  readonly start: (filter: RecordFilter) => Cursor;
  /** Returns the next records that match, each with the cursor of a page that ends with it. */
  readonly find: (
    runner: Runner,
    filter: RecordFilter,
    from: Cursor,
    limit: number,
  ) => Promise<{
    readonly items: readonly { readonly record: LiveRecord; readonly end: Cursor }[];
    readonly next: Cursor | undefined;
  }>;
}

const ORDERS: Readonly<Record<RecordOrder, OrderedSearch>> = {
  key: {
    start: (filter) => keyCursor(startOf(filter)),
    async find(runner, filter, [namespace = "", key = ""], limit) {
      if (filter.key !== "" && filter.namespace === undefined)
        return await findOfKey(runner, filter, namespace, limit);
      const { records, next } = await findRecords(runner, filter, { namespace, key }, limit);
      const items = records.map((record) => ({ record, end: keyCursor(cursorBehind(record.id)) }));
      return { items, next: next && keyCursor(next) };
    },
  },
  leaseExpiry: {
    start: () => ageCursor(BEFORE_ALL_AMBIGUOUS),
    async find(runner, filter, [since = "", namespace = "", key = ""], limit) {
      const { found, next } = await findAmbiguous(runner, filter, { since, namespace, key }, limit);
      return {
        items: found.map(({ record, at }) => ({ record, end: ageCursor(at) })),
        next: next && ageCursor(next),
      };
    },
  },
};

/** Finds the records of one key, whichever namespaces they are in. The cursor is a namespace. */
async function findOfKey(runner: Runner, filter: RecordFilter, afterNamespace: string, limit: number) {
  const { records, next } = await findKey(runner, filter, afterNamespace, limit);
  const behind = (namespace: string) => keyCursor({ namespace, key: "" });
  const items = records.map((record) => ({ record, end: behind(record.id.namespace) }));
  return { items, next: next === undefined ? undefined : behind(next) };
}

function keyCursor({ namespace, key }: RecordCursor): Cursor {
  return [namespace, key];
}

function ageCursor({ since, namespace, key }: AmbiguousCursor): Cursor {
  return [since, namespace, key];
}

/** Returns the order and every field of a filter, for its page tokens. */
function listScope({ tenantId, fingerprint, ...filter }: RecordFilter, order: RecordOrder): Scope {
  const { namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs, owner, leaseExpiredBeforeMs, key } =
    filter;
  return [
    ...[tenantId, "ListRecords", namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs, owner],
    ...[fingerprint && Buffer.from(fingerprint).toString("hex"), leaseExpiredBeforeMs, order, key],
  ];
}

/** Returns the record with the payload of the request where the database did not return the result's payload. */
function replyRecord(record: LiveRecord, { resolution }: ResolveCommand) {
  return recordMessage(resolution.kind === "complete" ? withResult(record, resolution.result) : record);
}

/** Returns the parts of a record that audit events may show: neither its key nor its result. */
function recordSnapshot({ phase, fencingToken, attempt, owner }: LiveRecord): Snapshot {
  return { state: phase.kind, fencingToken: String(fencingToken), attempt, owner };
}
