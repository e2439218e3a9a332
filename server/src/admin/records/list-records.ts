import { create } from "@bufbuild/protobuf";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import {
  FINGERPRINT_BYTES,
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_KEY_BYTES,
  MAX_OWNER_BYTES,
} from "../../domain/limits.ts";
import { mapSettled, Rejected } from "../../domain/operation.ts";
import { Refusal } from "../../domain/refusal.ts";
import { Violations } from "../../domain/violations.ts";
import { Record_State, type Record as RecordMessage, RecordSchema } from "../../gen/onceward/v1/record_pb.ts";
import {
  type ListRecordsRequest,
  ListRecordsRequest_Order,
  ListRecordsResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import type { LiveRecord } from "../../records/record.ts";
import { recordMessage } from "../../records/record-messages.ts";
import { administeredPart } from "../own-tenant.ts";
import { type Cursor, type Scan, type Scope, scanPage, scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantRpc } from "../services.ts";
import { type AmbiguousCursor, BEFORE_ALL_AMBIGUOUS, findAmbiguous } from "./find-ambiguous.ts";
import { findKey, findKeyPrefix } from "./find-key.ts";
import { cursorBehind, findRecords, type RecordCursor, type RecordFilter, startOf } from "./find-records.ts";
import { providerLinks } from "./provider-links.ts";

/** Records of a page with the states of their checkpoints, which together are as large as half a message. */
const MAX_RECORDS_WITH_STATES = 100;

/** Returns a page of the records that match. */
export const listRecords: TenantRpc<"listRecords"> = async (request, call, parts) => {
  const { pool, records, pageTokens, databaseClock } = parts;
  const violations = new Violations();
  const filter = parseRecordFilter(request, call, violations);
  const order = parseRecordOrder(request, violations);
  const { checkpointStates } = request;
  if (checkpointStates && filter.state !== "ambiguous") {
    violations.add("checkpoint_states", "needs the state STATE_AMBIGUOUS");
  }
  const maxSize = checkpointStates ? MAX_RECORDS_WITH_STATES : Number.POSITIVE_INFINITY;
  const runner = pool.of(call);
  const start = order === "key" ? keyCursor(startOf(filter)) : ageCursor(BEFORE_ALL_AMBIGUOUS);
  const { messages, nextPageToken } = await scanPage(
    { ...request, pageSize: Math.min(request.pageSize, maxSize) },
    {
      pageTokens,
      scope: [...listScope(filter, order), String(checkpointStates)],
      schema: RecordSchema,
      find: (behind, limit) =>
        scanUntil(limit, behind.length === 0 ? start : behind, (from: Cursor, count) =>
          findFrom(runner, filter, order, from, count, databaseClock.latestMs()),
        ),
      messageOf: ({ record }) => recordMessage(record),
      cursorOf: ({ end }) => end,
    },
    violations,
  );
  if (checkpointStates) await addStates(records, filter.tenantId, messages, call);
  const linked = filter.state === "ambiguous" ? messages.map(({ namespace }) => namespace) : [];
  const links = Object.fromEntries(await providerLinks(linked, call));
  return create(ListRecordsResponseSchema, { records: messages, providerLinks: links, nextPageToken });
};

/** Parses the filter of a list. Adds a violation for everything that is malformed. @throws Refusal NAMESPACE_DENIED. */
function parseRecordFilter(request: ListRecordsRequest, call: Call, violations: Violations): RecordFilter {
  const { namespace, keyPrefix } = request;
  const tenant = administeredPart(call, namespace, violations);
  violations.text("key_prefix", keyPrefix, { maxBytes: MAX_KEY_BYTES });
  violations.text("owner", request.owner, { maxBytes: MAX_OWNER_BYTES });
  violations.text("checkpoint", request.checkpoint, { maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  if (request.fingerprint.byteLength > 0 && request.fingerprint.byteLength !== FINGERPRINT_BYTES) {
    violations.add("fingerprint", `must have ${FINGERPRINT_BYTES} bytes`);
  }
  if (request.recordJob < 0n) violations.add("record_job", "must not be negative");
  if (!(request.state in STATES)) violations.add("state", "must be a state of a record");
  const filter = {
    namespace: namespace === "" ? undefined : namespace,
    state: STATES[request.state],
    keyPrefix,
    key: request.key,
    claimedAfterMs: violations.timestampMs("claimed_after", request.claimedAfter),
    claimedBeforeMs: violations.timestampMs("claimed_before", request.claimedBefore),
    owner: request.owner,
    fingerprint: request.fingerprint.byteLength === 0 ? undefined : request.fingerprint,
    leaseExpiredBeforeMs: violations.timestampMs("lease_expired_before", request.leaseExpiredBefore),
    checkpoint: request.checkpoint,
    recordJob: request.recordJob === 0n ? undefined : request.recordJob,
  };
  if (request.key !== "") checkAlone(request, violations);
  return { tenantId: tenant.id, ...filter };
}

/** Adds a violation for every field that `key` excludes: it finds a record, and the other fields select from a list. */
function checkAlone(request: ListRecordsRequest, violations: Violations): void {
  violations.text("key", request.key, { maxBytes: MAX_KEY_BYTES });
  const others = {
    state: request.state !== Record_State.UNSPECIFIED,
    key_prefix: request.keyPrefix !== "",
    claimed_after: request.claimedAfter !== undefined,
    claimed_before: request.claimedBefore !== undefined,
    owner: request.owner !== "",
    checkpoint: request.checkpoint !== "",
    record_job: request.recordJob !== 0n,
    fingerprint: request.fingerprint.byteLength > 0,
    lease_expired_before: request.leaseExpiredBefore !== undefined,
    order: request.order !== ListRecordsRequest_Order.UNSPECIFIED,
  };
  for (const [field, isSet] of Object.entries(others)) {
    if (isSet) violations.add(field, "must not be set with key");
  }
}

/** An order of a list of records: by namespace and key, or by the end of the lease. */
type RecordOrder = "key" | "leaseExpiry";

/** Parses the order of a list. Adds a violation for an unknown one, or one that the request's state does not have. */
function parseRecordOrder({ order, state }: ListRecordsRequest, violations: Violations): RecordOrder {
  switch (order) {
    case ListRecordsRequest_Order.UNSPECIFIED:
      return "key";
    case ListRecordsRequest_Order.LEASE_EXPIRY:
      if (state !== Record_State.AMBIGUOUS) {
        violations.add("order", "ORDER_LEASE_EXPIRY needs the state STATE_AMBIGUOUS");
      }
      return "leaseExpiry";
    default:
      violations.add("order", "must be an order of records");
      return "key";
  }
}

const STATES: Readonly<Record<number, RecordFilter["state"]>> = {
  [Record_State.UNSPECIFIED]: undefined,
  [Record_State.IN_PROGRESS]: "inProgress",
  [Record_State.COMPLETED]: "completed",
  [Record_State.RELEASED]: "released",
  [Record_State.AMBIGUOUS]: "ambiguous",
};

/** Returns the next records that match, each with the cursor of a page that ends with it. */
async function findFrom(
  runner: Runner,
  filter: RecordFilter,
  order: RecordOrder,
  [first = "", second = "", third = ""]: Cursor,
  limit: number,
  latestMs: number | undefined,
): Promise<Scan<{ readonly record: LiveRecord; readonly end: Cursor }, Cursor>> {
  if (order === "leaseExpiry") {
    const behind = { since: first, namespace: second, key: third };
    const { found, next } = await findAmbiguous(runner, filter, behind, limit, latestMs);
    const items = found.map(({ record, at }) => ({ record, end: ageCursor(at) }));
    return { items, next: next && ageCursor(next) };
  }
  if (filter.key !== "" && filter.namespace === undefined) {
    // Whichever namespaces the key is in: the cursor is a namespace.
    const { items: records, next } = await findKey(runner, filter, first, limit, latestMs);
    const items = records.map((record) => ({ record, end: [record.id.namespace, ""] }));
    return { items, next: next === undefined ? undefined : [next, ""] };
  }
  const from = { namespace: first, key: second };
  const { items: records, next } =
    filter.keyPrefix !== "" && filter.namespace === undefined
      ? await findKeyPrefix(runner, filter, from, limit, latestMs)
      : await findRecords(runner, filter, from, limit, latestMs);
  const items = records.map((record) => ({ record, end: keyCursor(cursorBehind(record.id)) }));
  return { items, next: next && keyCursor(next) };
}

function keyCursor({ namespace, key }: RecordCursor): Cursor {
  return [namespace, key];
}

function ageCursor({ since, namespace, key }: AmbiguousCursor): Cursor {
  return [since, namespace, key];
}

/**
 * Adds the states of checkpoints to records, from their rows. One that cannot be decrypted, or whose record was claimed since it was
 * listed, stays empty.
 */
async function addStates(
  records: AdministrationParts["records"],
  tenantId: number,
  messages: readonly RecordMessage[],
  call: Call,
): Promise<void> {
  const saved = messages.filter(({ checkpoint }) => checkpoint !== undefined);
  const ids = saved.map(({ namespace, key }) => ({ tenantId, namespace, key }));
  const added = mapSettled(await records.read(ids, call), (record, index) => {
    const { checkpoint, fencingToken } = saved[index] as RecordMessage;
    if (checkpoint && record?.checkpoint && record.fencingToken === fencingToken)
      checkpoint.state = Uint8Array.from(record.checkpoint.state);
  });
  const failed = added.find((each) => each instanceof Rejected && !isUnreadable(each.error));
  if (failed instanceof Rejected) throw failed.error;
}

function isUnreadable(error: unknown): boolean {
  return error instanceof Refusal && error.reason === "RECORD_UNREADABLE";
}

/** Returns the order and every field of a filter, for its page tokens. */
function listScope(filter: RecordFilter, order: RecordOrder): Scope {
  return [
    filter.tenantId,
    "ListRecords",
    filter.namespace,
    filter.state,
    filter.keyPrefix,
    filter.claimedAfterMs,
    filter.claimedBeforeMs,
    filter.owner,
    filter.fingerprint && Buffer.from(filter.fingerprint).toString("hex"),
    filter.leaseExpiredBeforeMs,
    order,
    filter.key,
    filter.checkpoint,
    filter.recordJob,
  ];
}
