import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import {
  ListRecordsRequest_Order,
  type ListRecordsRequestSchema,
  type ListRecordsResponse,
  TenantAdminService,
} from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { MAX_RECONCILED } from "@onceward/words/answers";
import { timestampOf } from "../../parts/filter-bar.tsx";
import { readPages } from "../../parts/pages.ts";

/** The filters of the queue, as the address names them. */
export const FILTERS = ["namespace", "owner", "checkpoint", "before"] as const;

/** The filters of the address; "" where there is none. */
export type Filters = Readonly<globalThis.Record<(typeof FILTERS)[number], string>>;

/** Returns the request for the ambiguous records that match, the oldest first. */
export function requestOf(filters: Filters) {
  return {
    ...{ state: Record_State.AMBIGUOUS, order: ListRecordsRequest_Order.LEASE_EXPIRY },
    ...{ namespace: filters.namespace, ...whichOf(filters) },
  } satisfies MessageInitShape<typeof ListRecordsRequestSchema>;
}

/** Returns which records the filters mean, for the RPCs that count and resolve them. */
export function whichOf({ owner, checkpoint, before }: Filters) {
  const leaseExpiredBefore = timestampOf(before);
  return { owner, checkpoint, ...(leaseExpiredBefore && { leaseExpiredBefore }) };
}

/** Returns which records the filters mean in words, such as "in charges, of worker-3"; "" for all. */
export function filterWords({ namespace, owner, checkpoint, before }: Filters): string {
  const parts = [
    namespace && `in ${namespace}`,
    owner && `of ${owner}`,
    checkpoint && `after ${checkpoint}`,
    before && `ambiguous since before ${before}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** The field of a namespace's policy that has the link to its provider. */
export const LINK_FIELD = "providerLink";

/** Returns the links to providers of a page of records, by namespace. */
export function linksOf({ providerLinks }: ListRecordsResponse): ReadonlyMap<string, string> {
  return new Map(Object.entries(providerLinks));
}

/** All records that match, at most MAX_RECONCILED. */
export interface ReadRecords {
  readonly records: readonly Record[];
  /** The links to providers, by namespace. */
  readonly links: ReadonlyMap<string, string>;
  /** There are more. */
  readonly isCut: boolean;
}

/** Returns the function that reads all records that match. */
export function useReadAll(filters: Filters): () => Promise<ReadRecords> {
  const client = createClient(TenantAdminService, useTransport());
  return async () => {
    const links = new Map<string, string>();
    const { rows, isCut } = await readPages(
      (pageToken) => client.listRecords({ ...requestOf(filters), pageSize: 1_000, pageToken }),
      (page) => {
        for (const [name, link] of linksOf(page)) links.set(name, link);
        return page.records;
      },
      { max: MAX_RECONCILED },
    );
    return { records: rows, links, isCut };
  };
}
