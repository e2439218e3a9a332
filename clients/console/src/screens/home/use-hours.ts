import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { callUnaryMethod, useQuery, useTransport } from "@connectrpc/connect-query";
import { GetUsageRequest_Grouping, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useQuery as usePlainQuery } from "@tanstack/react-query";
import { useNow } from "../../parts/time.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import { HOUR_MS, HOURS_SHOWN, type HourSum, hourOf, sumByHour } from "./hours.ts";

/** Of sums: an answer has fewer hours only where a tenant has so many namespaces that adding them takes longer than a second. */
const SUMS = { grouping: GetUsageRequest_Grouping.HOUR, pageSize: HOURS_SHOWN };
const MAX_PAGES = 5;
const LIVE_MS = 10_000;
/** Replicas store counts every few seconds; a closed hour hardly changes. */
const CLOSED_FRESH_MS = 5 * 60_000;

/** The usage of the last 24 hours; `hours` is undefined until it is answered. */
export interface RecentHours {
  readonly hours: readonly HourSum[] | undefined;
  /** More hours exist than the page reads: the newest are missing. */
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
        const request = { namespace, ...range, ...SUMS, pageToken };
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
    { namespace, after: timestampFromDate(current), ...SUMS },
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
