import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { HOUR_MS } from "../../format/duration.ts";
import { useFilters, useNamespace } from "../../parts/filter-bar.tsx";
import { usePage } from "../../parts/list.tsx";
import { FILTERS, type Filters, requestOf } from "./filters.ts";

const REFRESH_MS = 10_000;

/** Returns the filters of the queue in the address, also in that of a record that is opened from it. */
export function useQueueFilters(): Filters {
  const typed = useFilters(FILTERS);
  return { ...typed, namespace: useNamespace(typed.namespace) };
}

/** Reads the page of the queue that the address names, with what a person needs to decide. */
export function useQueue(filters: Filters) {
  const request = { ...requestOf(filters), checkpointStates: true, pageSize: 100 };
  return usePage(TenantAdminService.method.listRecords, request, REFRESH_MS);
}

/** Records that one owner left behind within an hour: probably one incident. */
export interface QueueGroup {
  readonly owner: string;
  /** Oldest first. */
  readonly rows: readonly [Record, ...Record[]];
}

/** Returns the records of a page, oldest first, in groups: the order in which they are shown, from the oldest group on. */
export function groupsOf(records: readonly Record[]): readonly QueueGroup[] {
  const groups: { owner: string; rows: [Record, ...Record[]] }[] = [];
  const newest = new Map<string, (typeof groups)[number]>();
  for (const record of records) {
    const group = newest.get(record.owner);
    if (group !== undefined && endMs(record) - endMs(group.rows[0]) < HOUR_MS) {
      group.rows.push(record);
      continue;
    }
    const next = { owner: record.owner, rows: [record] as [Record, ...Record[]] };
    newest.set(record.owner, next);
    groups.push(next);
  }
  return groups;
}

function endMs({ leaseExpiresAt }: Record): number {
  return leaseExpiresAt === undefined ? 0 : timestampMs(leaseExpiresAt);
}
