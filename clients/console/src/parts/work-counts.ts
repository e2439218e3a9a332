import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectQueryKey, useQuery as useConnectQuery, useTransport } from "@connectrpc/connect-query";
import {
  type CountAmbiguousRecordsRequestSchema,
  TenantAdminService,
} from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { isUnfinished } from "@onceward/words/job-words";
import { useQuery } from "@tanstack/react-query";
import { useLiveInterval } from "../shell/live.ts";

const LIVE_MS = 10_000;
/** The server stops counting a second before, and answers how many there are at least: no screen is the place to wait for more. */
const COUNT_TIMEOUT_MS = 3_000;

/** Counts the ambiguous records of a namespace that match; "" is all. */
export function useAmbiguousCount(
  namespace: string,
  which: MessageInitShape<typeof CountAmbiguousRecordsRequestSchema> = {},
) {
  const transport = useTransport();
  const schema = TenantAdminService.method.countAmbiguousRecords;
  const input = { ...which, namespace };
  return useQuery({
    queryKey: createConnectQueryKey({ schema, input, transport, cardinality: "finite" }),
    queryFn: ({ signal }) =>
      createClient(TenantAdminService, transport).countAmbiguousRecords(input, {
        signal,
        timeoutMs: COUNT_TIMEOUT_MS,
      }),
    refetchInterval: useLiveInterval(LIVE_MS),
  });
}

/** Reads the background changes of records that are not finished, of the newest 50. A tenant has at most 20 of them. */
export function useUnfinishedJobs() {
  return useConnectQuery(
    TenantAdminService.method.listRecordJobs,
    { pageSize: 50 },
    { refetchInterval: useLiveInterval(LIVE_MS), select: ({ jobs }) => jobs.filter(isUnfinished) },
  );
}
