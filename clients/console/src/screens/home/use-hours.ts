import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { callUnaryMethod, useQuery, useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useQuery as usePlainQuery } from "@tanstack/react-query";
import { useNow } from "../../parts/time.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { HOUR_MS, HOURS_SHOWN, type HourSum, hourOf, sumByHour } from "./hours.ts";

/** The server's most for a page. */
const PAGE_SIZE = 1_000;
/** Usage has a row for each namespace and hour: 5,000 rows are 200 busy namespaces. */
const MAX_PAGES = 5;
const LIVE_MS = 10_000;
/** Replicas store counts every few seconds; a closed hour hardly changes. */
const CLOSED_FRESH_MS = 5 * 60_000;

/** The usage of the last 24 hours; `hours` is undefined until it is answered. */
export interface RecentHours {
  readonly hours: readonly HourSum[] | undefined;
  /** More rows exist than the page reads: the sums are too low, the newest hours most. */
  readonly isCut: boolean;
  readonly error: unknown;
  readonly retry: () => unknown;
}

/**
 * Returns the last 24 hours of a namespace, or of all. The hours that have ended are read once; only the current one is
 * read again and again.
 */
export function useRecentHours(namespace: string): RecentHours {
  const transport = useTransport();
  const current = hourOf(useNow());
  const first = new Date(current.getTime() - (HOURS_SHOWN - 1) * HOUR_MS);
  const { getUsage } = TenantAdminService.method;
  const closed = usePlainQuery({
    queryKey: ["closed hours", namespace, current.getTime()],
    staleTime: CLOSED_FRESH_MS,
    async queryFn({ signal }) {
      const rows: UsageHour[] = [];
      let pageToken = "";
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const range = { after: timestampFromDate(first), before: timestampFromDate(current) };
        const request = { namespace, ...range, pageSize: PAGE_SIZE, pageToken };
        const answer = await callUnaryMethod(transport, getUsage, request, { signal });
        rows.push(...answer.hours);
        pageToken = answer.nextPageToken;
        if (pageToken === "") break;
      }
      return { rows, isCut: pageToken !== "" };
    },
  });
  const open = useQuery(
    getUsage,
    { namespace, after: timestampFromDate(current), pageSize: PAGE_SIZE },
    { refetchInterval: useLiveInterval(LIVE_MS), placeholderData: (before) => before },
  );
  const isAnswered = closed.data !== undefined && open.data !== undefined;
  return {
    hours: isAnswered ? sumByHour([...closed.data.rows, ...open.data.hours], current) : undefined,
    isCut: isAnswered && (closed.data.isCut || open.data.nextPageToken !== ""),
    error: closed.error ?? open.error ?? undefined,
    retry: () => Promise.all([closed.refetch(), open.refetch()]),
  };
}
