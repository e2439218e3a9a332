import { create } from "@bufbuild/protobuf";
import { Violations } from "../../../core/messages/violations.ts";
import { ListAuditEventsResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { listAuditEvents } from "../audit-lists.ts";
import type { TenantAdminOptions, TenantAdminRpcs } from "../services.ts";
import { administeredTenant } from "./own-tenant.ts";

/** Returns the RPC for audit events of the tenant, without those of an earlier tenant of the same name. */
export function createHistoryHandlers({
  pool,
  pageTokens,
}: TenantAdminOptions): TenantAdminRpcs<"listAuditEvents"> {
  return {
    async listAuditEvents(request, call) {
      const { id } = administeredTenant(call);
      const page = await listAuditEvents(
        { runner: pool.of(call), pageTokens },
        id,
        request,
        new Violations(),
      );
      return create(ListAuditEventsResponseSchema, page);
    },
  };
}
