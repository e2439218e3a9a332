import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../../core/calls/authority.ts";
import type { Call } from "../../../core/calls/call.ts";
import {
  FINGERPRINT_BYTES,
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_KEY_BYTES,
  MAX_OWNER_BYTES,
} from "../../../core/domain/limits.ts";
import type { LiveRecord } from "../../../core/domain/record.ts";
import { policyFor } from "../../../core/domain/tenant.ts";
import { recordMessage } from "../../../core/messages/record-messages.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { Record_State, RecordSchema } from "../../../gen/onceward/v1/record_pb.ts";
import {
  type ListRecordsRequest,
  ListRecordsRequest_Order,
  ListRecordsResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
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
import { type Cursor, pageSize, replyPage, type Scope, scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { findKey } from "../store/find-key.ts";
import { administeredNamespace, administeredPart } from "./own-tenant.ts";

/** Returns the RPC that searches records. */
export function createListRecords({
  pool,
  databaseClock,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"listRecords"> {
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
        find(pool.of(call), filter, from, count, databaseClock.latestMs()),
      );
      const { messages, last } = replyPage(items, size, RecordSchema, ({ record }) => recordMessage(record));
      const end = last === undefined ? next : last.end;
      const linked = filter.state === "ambiguous" ? messages.map(({ namespace }) => namespace) : [];
      return create(ListRecordsResponseSchema, {
        records: messages,
        providerLinks: Object.fromEntries(await providerLinks(linked, call)),
        ...(end && { nextPageToken: pageTokens.write(scope, end) }),
      });
    },
  };
}

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
  const filter = {
    namespace: namespace === "" ? undefined : namespace,
    state: parseState(request.state, violations),
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

function parseState(state: Record_State, violations: Violations): RecordFilter["state"] {
  switch (state) {
    case Record_State.UNSPECIFIED:
      return undefined;
    case Record_State.IN_PROGRESS:
      return "inProgress";
    case Record_State.COMPLETED:
      return "completed";
    case Record_State.RELEASED:
      return "released";
    case Record_State.AMBIGUOUS:
      return "ambiguous";
    default:
      violations.add("state", "must be a state of a record");
      return undefined;
  }
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
    latestMs: number | undefined,
  ) => Promise<{
    readonly items: readonly { readonly record: LiveRecord; readonly end: Cursor }[];
    readonly next: Cursor | undefined;
  }>;
}

const ORDERS: Readonly<Record<RecordOrder, OrderedSearch>> = {
  key: {
    start: (filter) => keyCursor(startOf(filter)),
    async find(runner, filter, [namespace = "", key = ""], limit, latestMs) {
      if (filter.key !== "" && filter.namespace === undefined)
        return await findOfKey(runner, filter, namespace, limit, latestMs);
      const { records, next } = await findRecords(runner, filter, { namespace, key }, limit, latestMs);
      const items = records.map((record) => ({ record, end: keyCursor(cursorBehind(record.id)) }));
      return { items, next: next && keyCursor(next) };
    },
  },
  leaseExpiry: {
    start: () => ageCursor(BEFORE_ALL_AMBIGUOUS),
    async find(runner, filter, [since = "", namespace = "", key = ""], limit, latestMs) {
      const behind = { since, namespace, key };
      const { found, next } = await findAmbiguous(runner, filter, behind, limit, latestMs);
      return {
        items: found.map(({ record, at }) => ({ record, end: ageCursor(at) })),
        next: next && ageCursor(next),
      };
    },
  },
};

/** Finds the records of one key, whichever namespaces they are in. The cursor is a namespace. */
async function findOfKey(
  runner: Runner,
  filter: RecordFilter,
  afterNamespace: string,
  limit: number,
  latestMs: number | undefined,
) {
  const { records, next } = await findKey(runner, filter, afterNamespace, limit, latestMs);
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

/** Returns the link to the provider that is in force in each namespace that has one. */
export async function providerLinks(
  namespaces: readonly string[],
  call: Call,
): Promise<ReadonlyMap<string, string>> {
  await loadPolicies(namespaces, call);
  const links = [...new Set(namespaces)].map((name) => {
    const tenant = administeredNamespace(call, name);
    return [name, policyFor(tenant, name).providerLink] as const;
  });
  return new Map(links.filter(([, link]) => link !== ""));
}

/** Returns the order and every field of a filter, for its page tokens. */
function listScope({ tenantId, fingerprint, ...filter }: RecordFilter, order: RecordOrder): Scope {
  const { namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs, owner, leaseExpiredBeforeMs } =
    filter;
  const { key, checkpoint, recordJob } = filter;
  return [
    ...[tenantId, "ListRecords", namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs, owner],
    ...[
      fingerprint && Buffer.from(fingerprint).toString("hex"),
      leaseExpiredBeforeMs,
      order,
      key,
      checkpoint,
      recordJob,
    ],
  ];
}
