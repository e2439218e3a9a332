import { createConnectQueryKey } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useQueryClient } from "@tanstack/react-query";

const { listRecords, getRecord, countAmbiguousRecords, listRecordJobs, getRecordJob } =
  TenantAdminService.method;
const KEYS = [
  createConnectQueryKey({ schema: countAmbiguousRecords, cardinality: undefined }),
  createConnectQueryKey({ schema: listRecords, cardinality: undefined }),
  createConnectQueryKey({ schema: getRecord, cardinality: undefined }),
  createConnectQueryKey({ schema: listRecordJobs, cardinality: undefined }),
  createConnectQueryKey({ schema: getRecordJob, cardinality: undefined }),
];

/** Returns the function that makes every screen read records and their jobs again, after a change of them. */
export function useRecordRefresh(): () => void {
  const queryClient = useQueryClient();
  return () => {
    for (const queryKey of KEYS) void queryClient.invalidateQueries({ queryKey });
  };
}
