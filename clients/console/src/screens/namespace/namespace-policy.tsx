import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace, Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Link } from "wouter";
import { PolicyEditor } from "../../policy/policy-editor.tsx";
import { policyText } from "../../policy/policy-fields.ts";
import { REVIEW_TIMEOUT_MS, useForgetPolicies } from "../../policy/policy-queries.ts";
import { useNamespace } from "./use-namespace.ts";

interface NamespacePolicyProps {
  readonly name: string;
  /** Undefined: it is not declared. */
  readonly namespace: Namespace | undefined;
  readonly tenant: Tenant;
}

/** The form over a namespace's policy. Saving it declares the namespace. */
export function NamespacePolicy({ name, namespace, tenant }: NamespacePolicyProps) {
  const client = createClient(TenantAdminService, useTransport());
  const { refetch } = useNamespace(name);
  const forget = useForgetPolicies();
  const isDeclared = namespace !== undefined;
  return (
    <>
      <p>
        A field without an own value is inherited from the <Link href="/settings">tenant settings</Link>.
      </p>
      <PolicyEditor
        subject={`the namespace ${name}`}
        saved={{ etag: namespace?.etag ?? "", own: policyText(namespace?.policy) }}
        inForce={policyText(namespace?.effectivePolicy ?? tenant.effectivePolicy)}
        tenantOwn={policyText(tenant.policy)}
        namespace={name}
        retentionHref={`/retention/${name}`}
        action={isDeclared ? "Save" : "Declare"}
        mayBeUnchanged={!isDeclared}
        send={async ({ policy, paths, etag, validateOnly }) => {
          const answer = await client.updateNamespace(
            {
              namespace: { name, policy: create(PolicySchema, policy), etag },
              updateMask: { paths },
              allowMissing: etag === "",
              validateOnly,
            },
            { timeoutMs: REVIEW_TIMEOUT_MS },
          );
          return policyText(answer.namespace?.effectivePolicy);
        }}
        reload={async () => {
          await forget();
          const latest = (await refetch()).data?.namespace;
          return { etag: latest?.etag ?? "", own: policyText(latest?.policy) };
        }}
      />
    </>
  );
}
