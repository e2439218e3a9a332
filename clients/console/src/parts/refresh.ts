import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { createConnectQueryKey } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";

/**
 * Returns the function that reads the answers of RPCs, or of all of a service, again, whichever their requests were: after a change,
 * those that the change can have altered. It resolves when the answers on the screen are new.
 */
export function useRefresh(): (...schemas: readonly (DescMethodUnary | DescService)[]) => Promise<void> {
  const queryClient = useQueryClient();
  return async (...schemas) => {
    await Promise.all(schemas.map((schema) => queryClient.invalidateQueries({ queryKey: keyOf(schema) })));
  };
}

function keyOf(schema: DescMethodUnary | DescService) {
  return schema.kind === "service"
    ? createConnectQueryKey({ schema, cardinality: undefined })
    : createConnectQueryKey({ schema, cardinality: undefined });
}
