import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { KeyTerms } from "../../parts/api-key/create-key-dialog.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { useLiveInterval } from "../../shell/live.ts";

/** A refused call is seen within 15 s: replicas store their counts every 5 s. */
const LIVE_MS = 8_000;

/** Reads the use of one tenant. */
export function useTenantUsage(name: string) {
  return useQuery(
    OperatorService.method.listTenantUsage,
    { tenant: name },
    {
      refetchInterval: useLiveInterval(LIVE_MS),
      select({ tenants: [found] }) {
        if (found === undefined) throw new Error(`The use of ${name} was not found.`);
        return found;
      },
    },
  );
}

/** Returns the function that creates a tenant's key. It calls the API directly: a mutation's answer would stay in the cache. */
export function useCreateTenantKey(): (tenant: string, apiKey: KeyTerms) => Promise<NewSecret> {
  const client = createClient(OperatorService, useTransport());
  return async (tenant, apiKey) => {
    const answer = await client.createTenantApiKey({ tenant, apiKey });
    return { id: answer.apiKey?.id ?? "", label: apiKey.label, secret: answer.secret };
  };
}
