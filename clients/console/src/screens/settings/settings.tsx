import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { Unanswered } from "../../parts/list-states.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import { PolicyEditor, type PolicyEditorProps, usePolicyForm } from "../../policy/policy-editor.tsx";
import { FIELD_NAMES, policyText } from "../../policy/policy-fields.ts";
import { Screen } from "../../shell/screen.tsx";
import { TenantFacts } from "./tenant-facts.tsx";

/** The screen "Tenant settings": the policy that namespaces inherit, and what the operator allows. */
export default function Settings() {
  const found = useQuery(TenantAdminService.method.getTenant);
  const tenant = found.data?.tenant;
  return (
    <Screen
      title="Tenant settings"
      lead="The policy of every namespace that sets no value of its own, and the limits that the operator set."
    >
      {tenant === undefined ? (
        <Unanswered query={found} rows={FIELD_NAMES.length * 2} />
      ) : (
        <TenantPolicy tenant={tenant} />
      )}
    </Screen>
  );
}

function TenantPolicy({ tenant }: { readonly tenant: Tenant }) {
  const client = createClient(TenantAdminService, useTransport());
  const { refetch } = useQuery(TenantAdminService.method.getTenant);
  const refresh = useRefresh();
  const editor: PolicyEditorProps = {
    subject: `the tenant ${tenant.name}`,
    saved: { etag: tenant.etag, own: policyText(tenant.policy) },
    inForce: policyText(tenant.effectivePolicy),
    namespace: "",
    action: "Save",
    async send({ policy, etag, ...how }, options) {
      const request = { tenant: { policy, etag }, ...how };
      const { tenant: after, ...answer } = await client.updateTenant(request, options);
      return { after, ...answer };
    },
    async reload() {
      await refresh(TenantAdminService);
      const { data } = await refetch();
      return { etag: data?.tenant?.etag ?? "", own: policyText(data?.tenant?.policy) };
    },
  };
  return (
    <>
      <h2>Default policy</h2>
      <PolicyEditor {...editor} form={usePolicyForm(editor)} />
      <TenantFacts tenant={tenant} />
      <CliHint command="onceward tenant show" />
    </>
  );
}
