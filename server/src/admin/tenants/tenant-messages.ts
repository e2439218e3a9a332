import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { resolvePolicy } from "../../domain/policy.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { NamespaceResource, TenantResource } from "../../domain/tenant.ts";
import { timestamp } from "../../domain/violations.ts";
import {
  type Namespace,
  NamespaceSchema,
  RecordJob_Kind,
  RecordJob_State,
  type RecordJob as RecordJobMessage,
  RecordJobSchema,
  type Tenant,
  Tenant_State,
  TenantSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { type RecordJob, recordsLeftAlone } from "../jobs/record-job.ts";
import { BOUND_MESSAGES, POLICY_MESSAGES, QUOTA_MESSAGES } from "../namespaces/policy-messages.ts";

/** Returns a tenant as its administrators and operators see it. */
export function tenantMessage(tenant: TenantResource): Tenant {
  return create(TenantSchema, {
    name: tenant.name,
    state: Tenant_State[tenant.state],
    policy: POLICY_MESSAGES.write(tenant.policy),
    effectivePolicy: POLICY_MESSAGES.write(resolvePolicy(tenant.policy)),
    policyBounds: BOUND_MESSAGES.write(tenant.bounds),
    quotas: QUOTA_MESSAGES.write(tenant.quotas),
    createdAt: timestamp(tenant.createdAtMs),
    etag: tenantEtag(tenant),
  });
}

/** Returns a declared namespace, with the policy in force. */
export function namespaceMessage(namespace: NamespaceResource, tenant: TenantResource): Namespace {
  return create(NamespaceSchema, {
    name: namespace.name,
    policy: POLICY_MESSAGES.write(namespace.policy),
    effectivePolicy: POLICY_MESSAGES.write(resolvePolicy(tenant.policy, namespace.policy)),
    createdAt: timestamp(namespace.createdAtMs),
    etag: namespaceEtag(namespace),
  });
}

/** Returns the etag of a tenant's state. It covers the id, so that no two tenants ever share one. */
export function tenantEtag({ id, version }: TenantResource): string {
  return digest(["tenant", id, version]);
}

/** Returns the etag of a namespace's state. */
export function namespaceEtag({ tenantId, name, version }: NamespaceResource): string {
  return digest(["namespace", tenantId, name, version]);
}

function digest(parts: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 22);
}

/**
 * Checks the etag of a request. An empty one matches every state.
 *
 * @throws Refusal ETAG_MISMATCH: the same for an old etag, another resource's and an invented one.
 */
export function checkEtag(sent: string, current: string | undefined): void {
  if (sent === "" || sent === current) return;
  throw new Refusal("ETAG_MISMATCH", "The etag is not the resource's current one; read the resource again.");
}

/** Returns a background change of records, with its progress. */
export function recordJobMessage(job: RecordJob): RecordJobMessage {
  const { work } = job;
  const leftAlone =
    work.kind === "RESOLVE" && job.state === "DONE" ? recordsLeftAlone(work, job.recordsChanged) : 0;
  return create(RecordJobSchema, {
    id: job.id,
    // The deletion of a tenant is never shown: its administrators no longer have access.
    kind: RecordJob_Kind[work.kind === "DELETE" ? "FORGET" : work.kind],
    namespace: job.namespace ?? "",
    state: RecordJob_State[job.state],
    recordsExamined: BigInt(job.recordsExamined),
    recordsChanged: BigInt(job.recordsChanged),
    recordsForgotten: BigInt(job.recordsForgotten),
    recordsMatching: BigInt(work.kind === "RESOLVE" ? work.matching : 0),
    recordsLeftAlone: BigInt(leftAlone),
    createdAt: timestamp(job.createdAtMs),
    startsAt: timestamp(job.startsAtMs),
    ...(job.finishedAtMs !== undefined && { finishedAt: timestamp(job.finishedAtMs) }),
  });
}
