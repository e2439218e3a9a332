import { create } from "@bufbuild/protobuf";
import {
  ListAuditEventsResponseSchema,
  type TenantAdminService,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { listAuditEvents } from "../audit-lists.ts";
import type { Handlers } from "../call.ts";
import { Violations } from "../violations.ts";
import { administeredTenant } from "./own-tenant.ts";
import type { TenantAdminOptions } from "./tenant-admin.ts";

/** What was changed or refused in the tenant: its own events, not those of an earlier one of its name. */
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
