import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
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

/** The records of a page that one owner left behind. */
export interface QueueGroup {
  readonly owner: string;
  /** Oldest first. */
  readonly rows: readonly [Record, ...Record[]];
}

/** Returns the records of a page, oldest first, by owner: the order in which they are shown, from the oldest record's owner on. */
export function groupsOf(records: readonly Record[]): readonly QueueGroup[] {
  const groups = Map.groupBy(records, ({ owner }) => owner);
  return [...groups].flatMap(([owner, [first, ...rows]]) =>
    first ? [{ owner, rows: [first, ...rows] }] : [],
  );
}
