import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { KeyTerms } from "../../parts/api-key/create-key-dialog.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";

/** Returns the function that creates a tenant's key. It calls the API directly: a mutation's answer would stay in the cache. */
export function useCreateTenantKey(): (tenant: string, apiKey: KeyTerms) => Promise<NewSecret> {
  const client = createClient(OperatorService, useTransport());
  return async (tenant, apiKey) => {
    const answer = await client.createTenantApiKey({ tenant, apiKey });
    return { id: answer.apiKey?.id ?? "", label: apiKey.label, secret: answer.secret };
  };
}
