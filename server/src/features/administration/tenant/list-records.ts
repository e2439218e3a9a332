import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../../core/calls/authority.ts";
import type { Call } from "../../../core/calls/call.ts";
import type { LiveRecord } from "../../../core/domain/record.ts";
import { policyFor } from "../../../core/domain/tenant.ts";
import { recordMessage } from "../../../core/messages/record-messages.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { RecordSchema } from "../../../gen/onceward/v1/record_pb.ts";
import { ListRecordsResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
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
import { findKey } from "../store/find-key.ts";
import type { TenantAdminOptions, TenantAdminRpcs } from "./options.ts";
import { administeredNamespace } from "./own-tenant.ts";
import { parseRecordFilter, parseRecordOrder, type RecordOrder } from "./record-requests.ts";

/** Returns the RPC that searches records. */
export function createListRecords({
  pool,
  databaseClock,
  pageTokens,
}: Pick<TenantAdminOptions, "pool" | "databaseClock" | "pageTokens">): TenantAdminRpcs<"listRecords"> {
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
  const { key, checkpoint } = filter;
  return [
    ...[tenantId, "ListRecords", namespace, state, keyPrefix, claimedAfterMs, claimedBeforeMs, owner],
    ...[
      fingerprint && Buffer.from(fingerprint).toString("hex"),
      leaseExpiredBeforeMs,
      order,
      key,
      checkpoint,
    ],
  ];
}
