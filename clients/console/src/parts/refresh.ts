import type { DescMethodUnary } from "@bufbuild/protobuf";
import { createConnectQueryKey } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";

/**
 * Returns the function that reads the answers of RPCs again, whichever their requests were: after a change, those that the
 * change can have altered. It resolves when the answers on the screen are new.
 */
export function useRefresh(): (...methods: readonly DescMethodUnary[]) => Promise<void> {
  const queryClient = useQueryClient();
  return async (...methods) => {
    await Promise.all(
      methods.map((schema) =>
        queryClient.invalidateQueries({
          queryKey: createConnectQueryKey({ schema, cardinality: undefined }),
        }),
      ),
    );
  };
}
