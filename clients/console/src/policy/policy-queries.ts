import { createConnectQueryKey } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useQueryClient } from "@tanstack/react-query";

/** With `validate_only` the server counts stored records until the call's time ends, and answers "at least". */
export const REVIEW_TIMEOUT_MS = 4_000;

/**
 * Returns the function that reads what is shown once more, after a policy changed: namespaces, the tenant, advice, jobs and
 * audit events depend on it. It resolves when the answers have arrived.
 */
export function useForgetPolicies(): () => Promise<void> {
  const queryClient = useQueryClient();
  return () =>
    queryClient.invalidateQueries({
      queryKey: createConnectQueryKey({ schema: TenantAdminService, cardinality: undefined }),
    });
}
