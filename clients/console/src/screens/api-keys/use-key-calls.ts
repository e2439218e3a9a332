import { createClient } from "@connectrpc/connect";
import { useMutation, useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { KeyTerms } from "../../parts/api-key/create-key-dialog.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { useRefresh } from "../../parts/refresh.ts";

/** Returns the function that creates a key. It calls the API directly: a mutation's answer would stay in the cache. */
export function useCreateKey(): (terms: KeyTerms) => Promise<NewSecret> {
  const client = createClient(TenantAdminService, useTransport());
  const refresh = useRefresh();
  return async (apiKey) => {
    const { apiKey: made, secret } = await client.createApiKey({ apiKey });
    // Not awaited: the secret is shown even if the list can't be read.
    void refresh(TenantAdminService);
    return { id: made?.id ?? "", label: made?.label ?? "", secret };
  };
}

/** Returns the function that revokes a key. */
export function useRevokeKey(): (id: string) => Promise<unknown> {
  const revoke = useMutation(TenantAdminService.method.revokeApiKey);
  const refresh = useRefresh();
  return async (id) => {
    await revoke.mutateAsync({ id });
    await refresh(TenantAdminService);
  };
}
