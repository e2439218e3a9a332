import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useMutation, useQuery, useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
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

/** Returns who created each of some keys, by the audit events of their time; undefined for a key whose event ended. */
export function useCreators(keys: readonly ApiKey[]): (id: string) => string | undefined {
  const times = keys.flatMap(({ createdAt }) => (createdAt === undefined ? [] : [timestampMs(createdAt)]));
  const span = {
    // Four for each key of a page: attempts that were refused are events, too.
    pageSize: 200,
    after: timestampFromMs(Math.min(...times, Date.now()) - 1_000),
    before: timestampFromMs(Math.max(...times, 0) + 1_000),
  };
  const options = { enabled: times.length > 0 };
  const list = TenantAdminService.method.listAuditEvents;
  const byAdmins = useQuery(list, { ...span, action: "CreateApiKey" }, options);
  const byOperators = useQuery(list, { ...span, action: "CreateTenantApiKey" }, options);
  return (id) => {
    const actorOf = ({ data }: typeof byAdmins) =>
      data?.events.find(({ target }) => target === `api key ${id}`)?.actor;
    const operator = actorOf(byOperators);
    return operator === undefined ? actorOf(byAdmins) : `operator ${operator}`;
  };
}
