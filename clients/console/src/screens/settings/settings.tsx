import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useQuery, useTransport } from "@connectrpc/connect-query";
import { PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { ErrorState, Loading } from "../../parts/list-states.tsx";
import { PolicyEditor, type PolicyEditorProps, usePolicyForm } from "../../policy/policy-editor.tsx";
import { FIELD_NAMES, policyText } from "../../policy/policy-fields.ts";
import { REVIEW_TIMEOUT_MS, useForgetPolicies } from "../../policy/policy-queries.ts";
import { Screen } from "../../shell/screen.tsx";
import { TenantFacts } from "./tenant-facts.tsx";

/** The screen "Tenant settings": the policy that namespaces inherit, and what the operator allows. */
export default function Settings() {
  const { data, error, refetch } = useQuery(TenantAdminService.method.getTenant);
  const tenant = data?.tenant;
  return (
    <Screen
      title="Tenant settings"
      lead="The policy of every namespace that sets no value of its own, and the limits that the operator set."
    >
      {tenant !== undefined ? (
        <TenantPolicy tenant={tenant} />
      ) : error !== null ? (
        <ErrorState error={error} retry={refetch} />
      ) : (
        <Loading rows={FIELD_NAMES.length * 2} />
      )}
    </Screen>
  );
}

function TenantPolicy({ tenant }: { readonly tenant: Tenant }) {
  const client = createClient(TenantAdminService, useTransport());
  const { refetch } = useQuery(TenantAdminService.method.getTenant);
  const forget = useForgetPolicies();
  const editor: PolicyEditorProps = {
    subject: `the tenant ${tenant.name}`,
    saved: { etag: tenant.etag, own: policyText(tenant.policy) },
    inForce: policyText(tenant.effectivePolicy),
    namespace: "",
    action: "Save",
    async send({ policy, paths, etag, ...how }) {
      const given = { policy: create(PolicySchema, policy), etag };
      const request = { tenant: given, updateMask: { paths }, ...how };
      const answer = await client.updateTenant(
        request,
        how.validateOnly ? { timeoutMs: REVIEW_TIMEOUT_MS } : {},
      );
      const { tenant: after, effect, job } = answer;
      return { inForce: policyText(after?.effectivePolicy), effect, jobId: job?.id };
    },
    async reload() {
      await forget();
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
