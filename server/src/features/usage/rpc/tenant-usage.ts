import { create } from "@bufbuild/protobuf";
import type { Handlers } from "../../../core/calls/call.ts";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { timestamp, Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { findTenantResource, listTenantResources } from "../../../core/store/tenants/tenants.ts";
import {
  ListTenantUsageResponseSchema,
  type OperatorService,
  TenantUsageSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import type { OperatorOptions } from "../../administration/operator/options.ts";
import { checkName } from "../../administration/operator/tenant-requests.ts";
import { pageSize, replyPage } from "../../administration/pages.ts";
import { QUOTA_MESSAGES } from "../../administration/policy-messages.ts";
import { findTenantUse, type TenantUse } from "../store/tenant-use.ts";

/** Each tenant takes some index ranges; a page of so many takes some tens of milliseconds. */
const MAX_TENANTS = 200;

/** Returns the RPC that shows tenants' use beside their quotas. */
export function createTenantUsageHandlers({
  pool,
  pageTokens,
}: OperatorOptions): Pick<Handlers<typeof OperatorService>, "listTenantUsage"> {
  return {
    async listTenantUsage(request) {
      const violations = new Violations();
      if (request.tenant !== "") checkName("tenant", request.tenant, violations);
      const scope = ["ListTenantUsage", request.tenant];
      const size = Math.min(pageSize(request.pageSize, violations), MAX_TENANTS);
      const [afterName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const found =
        request.tenant === ""
          ? await listTenantResources(pool, afterName, size + 1)
          : await findNamed(pool, request.tenant);
      const use = await findTenantUse(
        pool,
        found.slice(0, size).map(({ id }) => id),
      );
      const { messages, last } = replyPage(found, size, TenantUsageSchema, (tenant) =>
        usageMessage(tenant, use.get(tenant.id)),
      );
      return create(ListTenantUsageResponseSchema, {
        tenants: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [last.name]) }),
      });
    },
  };
}

/** Returns the tenant with a name, if there is one. */
async function findNamed(pool: Runner, name: string): Promise<readonly TenantResource[]> {
  const tenant = await findTenantResource(pool, name);
  return tenant === undefined ? [] : [tenant];
}

function usageMessage(tenant: TenantResource, use: TenantUse | undefined) {
  if (use === undefined) throw new Error("a listed tenant has no use");
  const { quotas } = tenant;
  return create(TenantUsageSchema, {
    tenant: tenant.name,
    quotas: QUOTA_MESSAGES.write(quotas),
    ...(quotas.liveRecords !== undefined &&
      use.liveRecords !== undefined && { liveRecords: use.liveRecords }),
    ...(quotas.storedBytes !== undefined &&
      use.storedBytes !== undefined && { storedBytes: use.storedBytes }),
    declaredNamespaces: use.declaredNamespaces,
    unfinishedRecordJobs: use.unfinishedJobs,
    recentClaims: use.recentClaims,
    recentSince: timestamp(use.recentSinceMs),
  });
}
