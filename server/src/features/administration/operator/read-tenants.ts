import { create } from "@bufbuild/protobuf";
import { Violations } from "../../../core/messages/violations.ts";
import { findTenantResource, listTenantResources } from "../../../core/store/tenants/tenants.ts";
import {
  ListTenantsResponseSchema,
  OperatorServiceGetTenantResponseSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { TenantSchema } from "../../../gen/onceward/v1/tenant_pb.ts";
import { listPage } from "../pages.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import { tenantMessage } from "../tenant-messages.ts";
import { tenantNotFound } from "./tenant-requests.ts";

/** Returns the RPCs that read tenants. */
export function createReadTenants({
  pool,
  pageTokens,
}: AdministrationParts): OperatorRpcs<"getTenant" | "listTenants"> {
  return {
    async getTenant({ name }) {
      const violations = new Violations();
      violations.name("name", name);
      violations.throwIfAny();
      const tenant = await findTenantResource(pool, name);
      if (tenant === undefined) throw tenantNotFound();
      return create(OperatorServiceGetTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },

    async listTenants(request) {
      const { messages, nextPageToken } = await listPage(request, {
        pageTokens,
        scope: ["ListTenants"],
        schema: TenantSchema,
        find: ([afterName = ""], limit) => listTenantResources(pool, afterName, limit),
        messageOf: tenantMessage,
        cursorOf: ({ name }) => [name],
      });
      return create(ListTenantsResponseSchema, { tenants: messages, nextPageToken });
    },
  };
}
