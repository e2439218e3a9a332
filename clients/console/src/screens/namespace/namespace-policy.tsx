import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { formatDurationMs } from "@onceward/decode/durations.ts";
import { PolicySchema } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace, Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { Link } from "wouter";
import { parseDuration } from "../../format/duration.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { POLICY_DRAFTS } from "../../policy/policy-draft.ts";
import { PolicyEditor, type PolicyEditorProps, usePolicyForm } from "../../policy/policy-editor.tsx";
import { policyText, SERVICE_DEFAULTS } from "../../policy/policy-fields.ts";
import { REVIEW_TIMEOUT_MS, useForgetPolicies } from "../../policy/policy-queries.ts";
import { type Lengthened, RetentionAnswer } from "./retention-answer.tsx";
import { useNamespace } from "./use-namespace.ts";

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
  const forget = useForgetPolicies();
  const [lengthened, setLengthened] = useState<Lengthened>();
  /** The advised retention that fixes the present one, once it was asked for. */
  const [fixMs, setFixMs] = useState<number>();
  const isDeclared = namespace !== undefined;
  const tenantOwn = policyText(tenant.policy);
  const inForce = policyText(namespace?.effectivePolicy ?? tenant.effectivePolicy);
  const editor: PolicyEditorProps = {
    subject: `the namespace ${name}`,
    saved: { etag: namespace?.etag ?? "", own: policyText(namespace?.policy) },
    ...{ inForce, tenantOwn, namespace: name },
    action: isDeclared ? "Save" : "Declare",
    mayBeUnchanged: !isDeclared,
    async send({ policy, paths, etag, ...how }) {
      const given = { name, policy: create(PolicySchema, policy), etag };
      const request = { namespace: given, updateMask: { paths }, allowMissing: etag === "", ...how };
      const answer = await client.updateNamespace(
        request,
        how.validateOnly ? { timeoutMs: REVIEW_TIMEOUT_MS } : {},
      );
      const { namespace: after, effect, job } = answer;
      return { inForce: policyText(after?.effectivePolicy), effect, jobId: job?.id };
    },
    async reload() {
      await forget();
      const latest = (await refetch()).data?.namespace;
      return { etag: latest?.etag ?? "", own: policyText(latest?.policy) };
    },
    onSaved({ keyRetention }) {
      const beforeMs = parseDuration(inForce.keyRetention) ?? 0;
      const afterMs = parseDuration(keyRetention) ?? 0;
      setLengthened(afterMs > beforeMs ? { beforeMs, isFixed: afterMs === fixMs } : undefined);
    },
  };
  const form = usePolicyForm(editor);
  const { draft, setDraft } = form;
  const typed = draft.typed.keyRetention || tenantOwn.keyRetention || SERVICE_DEFAULTS.keyRetention;
  const proposedMs = parseDuration(typed);
  const withRetention = (ms: number) => POLICY_DRAFTS.type(draft, "keyRetention", formatDurationMs(ms));
  return (
    <>
      <RetentionAnswer
        namespace={name}
        proposedMs={proposedMs}
        propose={(ms) => setDraft(withRetention(ms))}
        adopt={(ms, isFix) => {
          setFixMs(isFix ? ms : undefined);
          setDraft(withRetention(ms));
          void form.review(withRetention(ms));
        }}
        lengthened={lengthened}
      />
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
    </>
  );
}
