import { callUnaryMethod, createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { readFailure } from "../../session/failure.ts";

/** What is known of a name. */
export interface FoundNamespace {
  /** Undefined: it is not declared. */
  readonly namespace: Namespace | undefined;
}

/**
 * Reads a namespace. That it is not declared is an answer, not an error: a query in error begins at nothing when it is read
 * again, and a form over it would lose what was typed.
 */
export function useNamespace(name: string): UseQueryResult<FoundNamespace> {
  const transport = useTransport();
  const schema = TenantAdminService.method.getNamespace;
  const key = createConnectQueryKey({ schema, input: { name }, transport, cardinality: "finite" });
  return useQuery({
    queryKey: [...key, "or undeclared"],
    async queryFn({ signal }): Promise<FoundNamespace> {
      try {
        const { namespace } = await callUnaryMethod(transport, schema, { name }, { signal });
        return { namespace };
      } catch (error) {
        if (readFailure(error).reason !== "NAMESPACE_NOT_FOUND") throw error;
        return { namespace: undefined };
      }
    },
  });
}
