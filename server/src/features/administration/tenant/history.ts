import { create } from "@bufbuild/protobuf";
import type { Handlers } from "../../../core/calls/call.ts";
import { Violations } from "../../../core/messages/violations.ts";
import {
  ListAuditEventsResponseSchema,
  type TenantAdminService,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { listAuditEvents } from "../audit-lists.ts";
import type { TenantAdminOptions } from "./options.ts";
import { administeredTenant } from "./own-tenant.ts";

/** Returns the RPC for audit events of the tenant, without those of an earlier tenant of the same name. */
export function createHistoryHandlers({
  pool,
  pageTokens,
}: TenantAdminOptions): Pick<Handlers<typeof TenantAdminService>, "listAuditEvents"> {
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
