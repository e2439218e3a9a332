import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { callUnaryMethod, useQuery, useTransport } from "@connectrpc/connect-query";
import { GetUsageRequest_Grouping, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useQuery as usePlainQuery } from "@tanstack/react-query";
import { HOUR_MS } from "../../format/duration.ts";
import { readPages } from "../../parts/pages.ts";
import { useNow } from "../../parts/time.tsx";
import { useLiveInterval } from "../../shell/live.ts";
import { type Bar, barOf, firstOf, ofHour, ofMinute, type Range, sumByBar } from "./hours.ts";

/** Of sums: an answer has fewer hours only where a tenant has so many namespaces that adding them takes longer than a second. */
const SUMS = { grouping: GetUsageRequest_Grouping.HOUR, pageSize: 1_000 };
const MAX_HOURS = 5_000;
/** Replicas store their counts every 5 s: a refused call is seen within 15. */
const LIVE_MS = 8_000;
/** A closed hour hardly changes. */
const CLOSED_FRESH_MS = 5 * 60_000;

/** The use of a range; `bars` is undefined until it is answered. */
export interface RecentUse {
  readonly bars: readonly Bar[] | undefined;
  /** More hours exist than the page reads: the newest are missing. */
  readonly isCut: boolean;
  readonly error: Error | null;
  readonly refetch: () => unknown;
}

/** Returns what happens now in a namespace, or in all; read again every few seconds. */
export function useUsageNow(namespace: string) {
  const refetchInterval = useLiveInterval(LIVE_MS);
  return useQuery(TenantAdminService.method.getUsageNow, { namespace }, { refetchInterval });
}

/**
 * Returns the use of a namespace, or of all, in a range of hours; unless it is enabled, nothing is read. The hours that have ended are
 * read once; only the current one is read again and again.
 */
export function useRecentHours(namespace: string, range: Exclude<Range, "1h">, enabled = true): RecentUse {
  const transport = useTransport();
  const now = useNow();
  const current = new Date(Math.floor(now.getTime() / HOUR_MS) * HOUR_MS);
  const first = firstOf(barOf(now, range), range);
  const { getUsage } = TenantAdminService.method;
  const closed = usePlainQuery({
    queryKey: ["closed hours", namespace, range, current.getTime()],
    ...{ enabled, staleTime: CLOSED_FRESH_MS },
    queryFn({ signal }) {
      const times = { after: timestampFromDate(first), before: timestampFromDate(current) };
      const request = { namespace, ...times, ...SUMS };
      return readPages(
        (pageToken) => callUnaryMethod(transport, getUsage, { ...request, pageToken }, { signal }),
        ({ hours }) => hours,
        { max: MAX_HOURS },
      );
    },
  });
  const open = useQuery(
    getUsage,
    { namespace, after: timestampFromDate(current), ...SUMS },
    { enabled, refetchInterval: useLiveInterval(LIVE_MS), placeholderData: (before) => before },
  );
  const isAnswered = closed.data !== undefined && open.data !== undefined;
  return {
    bars: isAnswered
      ? sumByBar([...closed.data.rows, ...open.data.hours].map(ofHour), barOf(now, range), range)
      : undefined,
    isCut: isAnswered && (closed.data.isCut || open.data.nextPageToken !== ""),
    error: closed.error ?? open.error,
    refetch: () => Promise.all([closed.refetch(), open.refetch()]),
  };
}

/** Returns the minutes of the last hour of all namespaces; of one, none. */
export function useRecentMinutes(namespace: string): RecentUse {
  const now = useNow();
  const { data, error, refetch } = useUsageNow(namespace);
  return {
    bars: data && sumByBar(data.minutes.map(ofMinute), barOf(now, "1h"), "1h"),
    ...{ isCut: false, error, refetch },
  };
}
