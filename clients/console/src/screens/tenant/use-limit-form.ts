import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { PolicyBoundsSchema, QuotasSchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useForm } from "../../form/use-form.ts";
import { LIMIT_DRAFTS, LIMIT_FIELDS, limitTexts, parseLimits } from "./limit-fields.ts";

/** Holds the form of a tenant's limits. Its outcome is the tenant as it would be, or is. */
export function useLimitForm(tenant: Tenant) {
  const client = createClient(OperatorService, useTransport());
  const { refetch } = useQuery(OperatorService.method.getTenant, { name: tenant.name }, { enabled: false });
  return useForm<string, { readonly validateOnly: boolean }, Tenant | undefined>({
    name: `limits of ${tenant.name}`,
    drafts: LIMIT_DRAFTS,
    saved: { etag: tenant.etag, own: limitTexts(tenant) },
    problemsOf: (draft) => parseLimits(draft.typed, LIMIT_DRAFTS.changed(draft)).problems,
    fieldOfPath: (given) => LIMIT_FIELDS.find(({ path }) => path === given)?.path,
    preview: { validateOnly: true },
    async send(draft, { validateOnly }) {
      const paths = LIMIT_DRAFTS.changed(draft);
      const { policyBounds, quotas } = parseLimits(draft.typed, paths);
      const answer = await client.updateTenantLimits({
        ...{ name: tenant.name, etag: draft.saved.etag, validateOnly, updateMask: { paths: [...paths] } },
        policyBounds: create(PolicyBoundsSchema, policyBounds),
        quotas: create(QuotasSchema, quotas),
      });
      return answer.tenant;
    },
    async reload() {
      const { data } = await refetch();
      return { etag: data?.tenant?.etag ?? "" };
    },
  });
}
