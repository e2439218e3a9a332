import { createClient } from "@connectrpc/connect";
import { callUnaryMethod, createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace, Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { formatDurationMs } from "@onceward/words/durations";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { parseDuration } from "../../format/duration.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import { PolicyEditor, type PolicyEditorProps, usePolicyForm } from "../../policy/policy-editor.tsx";
import { POLICY_DRAFTS, POLICY_FIELDS, policyText } from "../../policy/policy-fields.ts";
import { readFailure } from "../../session/failure.ts";
import { RetentionAnswer } from "./retention-answer.tsx";

interface NamespacePolicyProps {
  readonly name: string;
  /** Undefined: it is not declared. */
  readonly namespace: Namespace | undefined;
  readonly tenant: Tenant;
}

/** Whether a namespace's retention is long enough, and the form over its policy. Saving it declares the namespace. */
export function NamespacePolicy({ name, namespace, tenant }: NamespacePolicyProps) {
  const client = createClient(TenantAdminService, useTransport());
  const { refetch } = useNamespace(name);
  const refresh = useRefresh();
  /** The retention before it was changed in this visit. */
  const [beforeMs, setBeforeMs] = useState<number>();
  const isDeclared = namespace !== undefined;
  const tenantOwn = policyText(tenant.policy);
  const inForce = policyText(namespace?.effectivePolicy ?? tenant.effectivePolicy);
  const editor: PolicyEditorProps = {
    subject: `the namespace ${name}`,
    saved: { etag: namespace?.etag ?? "", own: policyText(namespace?.policy) },
    ...{ inForce, tenantOwn, namespace: name },
    action: isDeclared ? "Save" : "Declare",
    mayBeUnchanged: !isDeclared,
    async send({ policy, etag, ...how }, options) {
      const request = { namespace: { name, policy, etag }, allowMissing: etag === "", ...how };
      const { namespace: after, ...answer } = await client.updateNamespace(request, options);
      return { after, ...answer };
    },
    async reload() {
      await refresh(TenantAdminService);
      const latest = (await refetch()).data?.namespace;
      return { etag: latest?.etag ?? "", own: policyText(latest?.policy) };
    },
    onSaved({ keyRetention }) {
      if (keyRetention !== inForce.keyRetention) setBeforeMs(parseDuration(inForce.keyRetention));
    },
  };
  const form = usePolicyForm(editor);
  const { draft, setDraft } = form;
  const typed = draft.typed.keyRetention || tenantOwn.keyRetention || POLICY_FIELDS.keyRetention.default;
  const proposedMs =
    POLICY_FIELDS.keyRetention.problemOf(typed) === undefined ? parseDuration(typed) : undefined;
  const withRetention = (ms: number) => POLICY_DRAFTS.type(draft, "keyRetention", formatDurationMs(ms));
  return (
    <RetentionAnswer
      namespace={name}
      proposedMs={proposedMs}
      propose={(ms) => setDraft(withRetention(ms))}
      adopt={(ms) => {
        setDraft(withRetention(ms));
        void form.review(withRetention(ms));
      }}
      beforeMs={beforeMs}
    >
      <h2>Policy</h2>
      <p>
        A field without an own value is inherited from the <Link href="/settings">tenant settings</Link>.
      </p>
      <PolicyEditor {...editor} form={form} />
      <CliHint
        command={
          proposedMs === undefined || proposedMs === parseDuration(inForce.keyRetention)
            ? `onceward namespaces ${isDeclared ? "show" : "set"} ${name}`
            : `onceward retention set ${name} --key ${formatDurationMs(proposedMs)} --dry-run`
        }
      />
    </RetentionAnswer>
  );
}

/** What is known of a name; `namespace` is undefined if it is not declared. */
type FoundNamespace = Pick<NamespacePolicyProps, "namespace">;

/**
 * Reads a namespace. That it is not declared is an answer, not an error: a query in error begins at nothing when it is read
 * again, and a form over it would lose what was typed.
 */
export function useNamespace(name: string): UseQueryResult<FoundNamespace> {
  const transport = useTransport();
  const schema = TenantAdminService.method.getNamespace;
  const key = createConnectQueryKey({ schema, input: { name }, transport, cardinality: "finite" });
  return useQuery({
    queryKey: [...key, "or undeclared"],
    async queryFn({ signal }): Promise<FoundNamespace> {
      try {
        const { namespace } = await callUnaryMethod(transport, schema, { name }, { signal });
        return { namespace };
      } catch (error) {
        if (readFailure(error).reason !== "NAMESPACE_NOT_FOUND") throw error;
        return { namespace: undefined };
      }
    },
  });
}
