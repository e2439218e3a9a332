import type { DescService } from "@bufbuild/protobuf";
import { createConnectQueryKey } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";

/**
 * Returns the function that reads the answers of a service on the screen again, after a change. It resolves when they are new.
 */
export function useRefresh(): (service: DescService) => Promise<void> {
  const queryClient = useQueryClient();
  return (schema) =>
    queryClient.invalidateQueries({ queryKey: createConnectQueryKey({ schema, cardinality: undefined }) });
}
