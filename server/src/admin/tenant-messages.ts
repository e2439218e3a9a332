import { create } from "@bufbuild/protobuf";
import { resolvePolicy } from "../domain/policy.ts";
import type { RecordJob } from "../domain/record-job.ts";
import type { NamespaceResource, TenantResource, TenantState } from "../domain/tenant-resource.ts";
import {
  type PolicyBounds,
  PolicyBoundsSchema,
  type Quotas,
  QuotasSchema,
} from "../gen/onceward/v1/policy_pb.ts";
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
} from "../gen/onceward/v1/tenant_pb.ts";
import { duration, timestamp } from "../messages/wire-times.ts";
import { namespaceEtag, tenantEtag } from "./etags.ts";
import { policyMessage } from "./policy-messages.ts";

const TENANT_STATES: Readonly<Record<TenantState, Tenant_State>> = {
  ACTIVE: Tenant_State.ACTIVE,
  SUSPENDED: Tenant_State.SUSPENDED,
  DELETING: Tenant_State.DELETING,
};

/** A tenant as it is shown to its administrator and to operators. */
export function tenantMessage(tenant: TenantResource): Tenant {
  return create(TenantSchema, {
    name: tenant.name,
    state: TENANT_STATES[tenant.state],
    policy: policyMessage(tenant.policy),
    effectivePolicy: policyMessage(resolvePolicy(tenant.policy)),
    policyBounds: boundsMessage(tenant),
    quotas: quotasMessage(tenant),
    createdAt: timestamp(tenant.createdAtMs),
    etag: tenantEtag(tenant),
  });
}

function boundsMessage({ bounds }: TenantResource): PolicyBounds {
  const { minKeyRetentionS, maxKeyRetentionS, maxLeaseMs, maxResultBytes } = bounds;
  return create(PolicyBoundsSchema, {
    ...(minKeyRetentionS !== undefined && { minKeyRetention: duration(minKeyRetentionS * 1000) }),
    ...(maxKeyRetentionS !== undefined && { maxKeyRetention: duration(maxKeyRetentionS * 1000) }),
    ...(maxLeaseMs !== undefined && { maxLease: duration(maxLeaseMs) }),
    ...(maxResultBytes !== undefined && { maxResultBytes }),
  });
}

function quotasMessage({ quotas }: TenantResource): Quotas {
  const { operationsPerSecond, burst, concurrentCalls, liveRecords, storedBytes, weight, dryRun } = quotas;
  const { declaredNamespaces } = quotas;
  return create(QuotasSchema, {
    ...(operationsPerSecond !== undefined && { operationsPerSecond }),
    ...(burst !== undefined && { burst }),
    ...(concurrentCalls !== undefined && { concurrentCalls }),
    ...(liveRecords !== undefined && { liveRecords: BigInt(liveRecords) }),
    ...(storedBytes !== undefined && { storedBytes: BigInt(storedBytes) }),
    weight,
    dryRun,
    ...(declaredNamespaces !== undefined && { declaredNamespaces }),
  });
}

/** A declared namespace, with what it has from its tenant. */
export function namespaceMessage(namespace: NamespaceResource, tenant: TenantResource): Namespace {
  return create(NamespaceSchema, {
    name: namespace.name,
    policy: policyMessage(namespace.policy),
    effectivePolicy: policyMessage(resolvePolicy(tenant.policy, namespace.policy)),
    createdAt: timestamp(namespace.createdAtMs),
    etag: namespaceEtag(namespace),
  });
}

const JOB_STATES: Readonly<Record<RecordJob["state"], RecordJob_State>> = {
  WAITING: RecordJob_State.WAITING,
  RUNNING: RecordJob_State.RUNNING,
  DONE: RecordJob_State.DONE,
};

/** A background change of records, as far as it is. */
export function recordJobMessage(job: RecordJob): RecordJobMessage {
  return create(RecordJobSchema, {
    id: job.id,
    kind: job.work.kind === "RESTAMP" ? RecordJob_Kind.RESTAMP : RecordJob_Kind.FORGET,
    namespace: job.namespace ?? "",
    state: JOB_STATES[job.state],
    recordsExamined: BigInt(job.recordsExamined),
    recordsChanged: BigInt(job.recordsChanged),
    recordsForgotten: BigInt(job.recordsForgotten),
    createdAt: timestamp(job.createdAtMs),
    startsAt: timestamp(job.startsAtMs),
    ...(job.finishedAtMs !== undefined && { finishedAt: timestamp(job.finishedAtMs) }),
  });
}
