import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import type { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { IdentityService } from "../../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import type { OperatorService } from "../../../clients/typescript/src/gen/onceward/v1/operator_pb.ts";
import {
  GetUsageRequest_Grouping,
  type TenantAdminService,
} from "../../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role } from "../../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import type { UnaryMethods } from "../../../server/src/core/calls/call.ts";
import { FORGET, RELEASE } from "../calls/resolutions.ts";
import { bytes, success } from "../calls/verbs.ts";
import type { Names } from "./tenant-fixture.ts";

/** For every unary RPC of a service, requests that name things. A request without a name shows that none can be given. */
type Requests<Service extends DescService> = {
  readonly [Method in keyof UnaryMethods<Service>]: (
    names: Names,
  ) => readonly MessageInitShape<Service["method"][Method]["input"]>[];
};

/** A record that the sender of the requests holds. */
export const OWN = { namespace: "own", key: "own-order" };

const policy = { keyRetention: { seconds: 90_000n, nanos: 0 } };
const completed = ({ namespace, completedKey: key }: Names) => ({ namespace, key });
const held = ({ namespace, heldKey: key }: Names) => ({ namespace, key });
const result = success("forged");
const reason = "to find out";

/** The requests that a caller may send. */
export const CALLERS_REQUESTS: Requests<typeof IdempotencyService> = {
  lookup: (names) => [completed(names), held(names)],
  complete: (names) => [
    { ...held(names), fencingToken: names.fencingToken, result },
    { ...OWN, fencingToken: names.fencingToken, result },
  ],
  release: (names) => [
    { ...held(names), fencingToken: names.fencingToken, reason },
    { ...OWN, fencingToken: names.fencingToken },
  ],
  extendLease: (names) => [
    { ...held(names), fencingToken: names.fencingToken, checkpoint: { name: "x", state: bytes("forged") } },
    { ...OWN, fencingToken: names.fencingToken },
  ],
  batch: (names) => [
    {
      items: [
        { request: { case: "lookup", value: completed(names) } },
        {
          request: { case: "complete", value: { ...held(names), fencingToken: names.fencingToken, result } },
        },
        { request: { case: "release", value: { ...held(names), fencingToken: names.fencingToken } } },
        { request: { case: "extendLease", value: { ...held(names), fencingToken: names.fencingToken } } },
        { request: { case: "claim", value: { ...completed(names), key: `${names.completedKey}-2` } } },
      ],
    },
  ],
  // Last, because a granted claim creates a record of the sender's tenant.
  claim: (names) => [
    completed(names),
    { ...held(names), claimId: names.claimId },
    { ...OWN, claimId: names.claimId },
  ],
};

/** The requests that an administrator may send. */
export const ADMINISTRATORS_REQUESTS: Requests<typeof TenantAdminService> = {
  getTenant: () => [{}],
  updateTenant: ({ tenantEtag, namespaceEtag, tenant: name }) => [
    { tenant: { etag: tenantEtag, policy } },
    { tenant: { etag: namespaceEtag, policy } },
    { tenant: { name, etag: tenantEtag, policy }, validateOnly: true },
  ],
  getNamespace: ({ namespace: name }) => [{ name }],
  listNamespaces: ({ pageTokens }) => [{ pageToken: pageTokens.listNamespaces }, {}],
  listUndeclaredNamespaces: ({ pageTokens }) => [{ pageToken: pageTokens.listNamespaces }, {}],
  updateNamespace: ({ namespace: name, namespaceEtag: etag, tenantEtag }) => [
    { namespace: { name, policy } },
    { namespace: { name, policy, etag } },
    { namespace: { name, policy, etag }, allowMissing: true },
    { namespace: { name: OWN.namespace, policy, etag }, allowMissing: true },
    { namespace: { name, policy, etag: tenantEtag }, allowMissing: true, applyToExisting: true },
    { namespace: { name, policy }, allowMissing: true, validateOnly: true },
  ],
  deleteNamespace: ({ namespace: name, namespaceEtag: etag }) => [{ name }, { name, etag, force: true }],
  listRecords: (names) => [
    { namespace: names.namespace },
    { namespace: names.namespace, pageToken: names.pageTokens.listRecords },
    { keyPrefix: names.completedKey },
    { key: names.completedKey },
  ],
  countRecords: (names) => [
    { namespace: names.namespace },
    { namespace: names.namespace, pageToken: names.pageTokens.listRecords },
  ],
  getRecord: (names) => [completed(names), held(names)],
  getKeyHistory: (names) => [completed(names), held(names)],
  resolveRecord: (names) => [
    { ...completed(names), reason, resolution: FORGET },
    { ...held(names), reason, resolution: RELEASE, fencingToken: names.fencingToken },
    { ...held(names), reason, resolution: { case: "complete", value: { result } } },
    { ...OWN, reason, resolution: FORGET, fencingToken: names.fencingToken },
  ],
  resolveAmbiguousRecords: ({ namespace }) => [
    { namespace, reason, resolution: FORGET, validateOnly: true },
    { namespace, reason, resolution: RELEASE, expectedCount: 2n },
    { owner: "", reason, resolution: FORGET, validateOnly: true },
    { namespace, reason, resolution: { case: "complete", value: { result } }, expectedCount: 1n },
  ],
  cancelRecordJob: ({ recordJobId: id }) => [{ id }],
  countAmbiguousRecords: ({ namespace }) => [{}, { namespace }],
  listRecordJobs: ({ pageTokens }) => [{ pageToken: pageTokens.listRecordJobs }, {}],
  getRecordJob: ({ recordJobId: id }) => [{ id }],
  createApiKey: ({ apiKeyId: id }) => [
    { apiKey: { id, role: ApiKey_Role.OPERATOR } },
    { apiKey: { id, role: ApiKey_Role.UNSPECIFIED } },
  ],
  listApiKeys: ({ pageTokens }) => [{ pageToken: pageTokens.listApiKeys }, {}],
  revokeApiKey: ({ apiKeyId: id }) => [{ id }],
  listAuditEvents: ({ pageTokens }) => [{ pageToken: pageTokens.listAuditEvents }],
  getUsage: ({ namespace, pageTokens }) => [
    { namespace },
    { namespace, grouping: GetUsageRequest_Grouping.HOUR },
    { pageToken: pageTokens.getUsage },
  ],
  getUsageNow: ({ namespace }) => [{ namespace }],
  getRetentionAdvice: ({ namespace }) => [{ namespace }, { namespace, maxLatePerMillion: 100_000 }],
  listRetentionAdvice: ({ namespace }) => [{ namespaces: [namespace] }, { namespaces: ["other", namespace] }],
  getKeyQuality: ({ namespace, pageTokens }) => [{ namespace }, { pageToken: pageTokens.getKeyQuality }],
};

/** The requests that every credential may send. */
export const EVERYBODYS_REQUESTS: Requests<typeof IdentityService> = { whoAmI: () => [{}] };

/** The requests that only an operator may send. */
export const OPERATORS_REQUESTS: Requests<typeof OperatorService> = {
  createTenant: ({ tenant: name }) => [{ tenant: { name } }],
  getTenant: ({ tenant: name }) => [{ name }],
  listTenants: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
  listTenantUsage: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
  updateTenantLimits: ({ tenant: name, tenantEtag: etag }) => [{ name, etag, quotas: { liveRecords: 1n } }],
  suspendTenant: ({ tenant: name }) => [{ name, reason }],
  resumeTenant: ({ tenant: name }) => [{ name, reason }],
  deleteTenant: ({ tenant: name, tenantEtag: etag }) => [{ name, etag, reason }],
  createTenantApiKey: ({ tenant }) => [{ tenant, apiKey: { role: ApiKey_Role.TENANT_ADMIN } }],
  createOperatorApiKey: () => [{}, { apiKey: { role: ApiKey_Role.OPERATOR } }],
  listOperatorApiKeys: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
  revokeOperatorApiKey: ({ apiKeyId: id }) => [{ id }],
  listAuditEvents: ({ tenant, pageTokens }) => [
    { tenant },
    { tenant, pageToken: pageTokens.listAuditEvents },
  ],
  getServerInfo: () => [{}],
  diagnose: () => [{}],
  listReplicas: ({ pageTokens }) => [{}, { pageToken: pageTokens.listApiKeys }],
};
