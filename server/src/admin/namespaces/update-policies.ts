import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { isOutdated } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import { updateTenant } from "../../database/tenants/tenants.ts";
import { isExpired } from "../../domain/operation.ts";
import { fieldsOf, type PolicyOverrides, resolvePolicy } from "../../domain/policy.ts";
import { boundsInForce, policyViolations, WIDEST_BOUNDS } from "../../domain/policy-bounds.ts";
import { MAX_DECLARED_NAMESPACES } from "../../domain/quotas.ts";
import { POLICY_SETTLES_MS } from "../../domain/statement-times.ts";
import {
  databaseNowMs,
  type NamespaceResource,
  type Tenant,
  type TenantResource,
} from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import type { Policy } from "../../gen/onceward/v1/policy_pb.ts";
import {
  type UpdateNamespaceRequest,
  UpdateNamespaceResponseSchema,
  type UpdateTenantRequest,
  UpdateTenantResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { type RetentionEffect, RetentionEffectSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { historyAfter } from "../../records/late-keys.ts";
import { recordChange } from "../audit/audited-change.ts";
import { maskedFields } from "../field-messages.ts";
import {
  changeFor,
  type RecordJob,
  type RetentionChange,
  type RetentionChanges,
  retentionChange,
} from "../jobs/record-job.ts";
import { newRecordJob } from "../jobs/record-job-rpcs.ts";
import { nextNamespace, previewPage } from "../jobs/restamp-records.ts";
import { administeredTenant, lockOwnTenant, namespaceNotFound, tenantOfNamespace } from "../own-tenant.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import {
  checkEtag,
  namespaceEtag,
  namespaceMessage,
  recordJobMessage,
  tenantEtag,
  tenantMessage,
} from "../tenants/tenant-messages.ts";
import {
  countNamespaces,
  findNamespaceResource,
  listNamespaceResources,
  putNamespace,
} from "./namespaces.ts";
import { POLICY_MESSAGES, POLICY_PREFIX, parsePolicy } from "./policy-messages.ts";

type Parts = Pick<AdministrationParts, "admission" | "databaseClock">;

/** Returns the RPCs that change the tenant's policy, and declare a namespace or change its policy. */
export function createUpdatePolicies({
  pool,
  changes: listener,
  ...parts
}: AdministrationParts): TenantAdminRpcs<"updateTenant" | "updateNamespace"> {
  return {
    async updateTenant(request, call) {
      const own = administeredTenant(call);
      const violations = new Violations();
      const update = parsePolicyUpdate(request.tenant?.policy, request.updateMask, violations);
      violations.throwIfAny();
      const runner = pool.of(call);
      const { was, becomes, job } = await runner.transaction((transaction) =>
        changeTenant(transaction, call, parts, { own, request, update }),
      );
      listener.tenantChanged(own.id);
      const effect = request.validateOnly
        ? await retentionEffect(runner, own.id, undefined, await changesFrom(runner, was, becomes), call)
        : undefined;
      const tenant = tenantMessage(becomes);
      return create(UpdateTenantResponseSchema, { tenant, effect, job: job && recordJobMessage(job) });
    },

    async updateNamespace(request, call) {
      const name = request.namespace?.name ?? "";
      const violations = new Violations();
      const update = parsePolicyUpdate(request.namespace?.policy, request.updateMask, violations);
      const own = tenantOfNamespace(name, "namespace.name", call, violations);
      const runner = pool.of(call);
      const { tenant, becomes, changes, job } = await runner.transaction((transaction) =>
        changeNamespace(transaction, call, parts, name, { own, request, update }),
      );
      listener.tenantChanged(own.id);
      const effect = request.validateOnly
        ? await retentionEffect(runner, own.id, name, changes, call)
        : undefined;
      const namespace = namespaceMessage(becomes, tenant);
      return create(UpdateNamespaceResponseSchema, { namespace, effect, job: job && recordJobMessage(job) });
    },
  };
}

/** A valid request of a caller who administers the tenant. */
interface Update<Request> {
  readonly own: Tenant;
  readonly request: Request;
  readonly update: PolicyUpdate;
}

/** The fields that an update changes, and their new values. */
interface PolicyUpdate {
  readonly asked: PolicyOverrides;
  readonly masked: ReadonlySet<string>;
}

/** Parses an update. Adds a violation for everything that no tenant may set. */
function parsePolicyUpdate(
  message: Policy | undefined,
  mask: FieldMask | undefined,
  violations: Violations,
): PolicyUpdate {
  const asked = parsePolicy(message, WIDEST_BOUNDS, violations);
  const fields = { paths: POLICY_MESSAGES.paths, set: POLICY_MESSAGES.pathsOf(message) };
  return { asked, masked: maskedFields(mask, fields, violations) };
}

/** Stores a tenant's new policy with its audit event, or only returns it for `validate_only`. */
async function changeTenant(
  transaction: Runner,
  call: Call,
  parts: Parts,
  { own, request, update }: Update<UpdateTenantRequest>,
) {
  const was = await lockOwnTenant(transaction, own);
  checkEtag(request.tenant?.etag ?? "", tenantEtag(was));
  const asked = { ...was, policy: applyPolicyUpdate(was.policy, [], update, was, call) };
  if (request.validateOnly) return { was, becomes: asked, job: undefined };

  const becomes = await updateTenant(transaction, asked);
  const job = request.applyToExisting
    ? await restamp(transaction, parts, was, undefined, await changesFrom(transaction, was, becomes))
    : undefined;
  await recordChange(transaction, call, {
    action: "UpdateTenant",
    target: `tenant ${own.name}`,
    before: fieldsOf(was.policy),
    after: { ...fieldsOf(becomes.policy), ...(job && { recordJob: String(job.id) }) },
  });
  return { was, becomes, job };
}

/** Stores a namespace's new policy with its audit event, or only returns it for `validate_only`. */
async function changeNamespace(
  transaction: Runner,
  call: Call,
  parts: Parts,
  name: string,
  { own, request, update }: Update<UpdateNamespaceRequest>,
) {
  const tenant = await lockOwnTenant(transaction, own);
  const was = await findNamespaceResource(transaction, own.id, name);
  if (was === undefined && !request.allowMissing) throw namespaceNotFound();
  checkEtag(request.namespace?.etag ?? "", was && namespaceEtag(was));
  if (was === undefined) {
    const declared = await countNamespaces(transaction, own.id, MAX_DECLARED_NAMESPACES);
    parts.admission.admitNamespace(tenant, declared);
  }
  const before = was?.policy ?? {};
  const policy = applyPolicyUpdate(before, [tenant.policy], update, tenant, call);
  const change = retentionChange(resolvePolicy(tenant.policy, before), resolvePolicy(tenant.policy, policy));
  const changes = { byNamespace: { [name]: change }, others: undefined };
  if (request.validateOnly) {
    const asked = was ?? { tenantId: own.id, name, createdAtMs: Date.now(), version: 0 };
    return { tenant, becomes: { ...asked, policy }, changes, job: undefined };
  }

  const becomes = await putNamespace(transaction, { tenantId: own.id, name, policy });
  const job = request.applyToExisting ? await restamp(transaction, parts, tenant, name, changes) : undefined;
  await recordChange(transaction, call, {
    action: "UpdateNamespace",
    target: `namespace ${name}`,
    ...(was && { before: fieldsOf(was.policy) }),
    after: { ...fieldsOf(becomes.policy), ...(job && { recordJob: String(job.id) }) },
  });
  return { tenant, becomes, changes, job };
}

/**
 * Returns the updated policy, with what the earlier policies leave behind. `inherits`: the policies that it inherits from.
 *
 * @throws Refusal INVALID_REQUEST if the update sets a field beyond what the operator lets this tenant set. A field that the
 *   update leaves alone may be beyond bounds that were set later.
 */
function applyPolicyUpdate(
  was: PolicyOverrides,
  inherits: readonly PolicyOverrides[],
  { asked, masked }: PolicyUpdate,
  { bounds }: TenantResource,
  { principal }: Call,
): PolicyOverrides {
  const becomes = POLICY_MESSAGES.merge(was, asked, masked);
  const violations = new Violations();
  for (const { field, description } of policyViolations(
    becomes,
    boundsInForce(bounds),
    POLICY_PREFIX,
    inherits,
  )) {
    if (masked.has(field)) violations.add(field, description);
  }
  violations.throwIfAny();
  const history = historyAfter(
    resolvePolicy(...inherits, was),
    resolvePolicy(...inherits, becomes),
    databaseNowMs(principal),
  );
  return { ...becomes, history };
}

/** Creates the job that changes the retention of a tenant's records, or of one namespace's. */
function restamp(
  transaction: Runner,
  parts: Parts,
  tenant: TenantResource,
  namespace: string | undefined,
  changes: RetentionChanges,
): Promise<RecordJob> {
  const work = { kind: "RESTAMP", changes } as const;
  return newRecordJob(transaction, parts, tenant, { namespace, work, delayMs: POLICY_SETTLES_MS });
}

const PAGE_NAMESPACES = 1000;

/** Returns the change of retention of each namespace: of declared ones, and of all others. */
async function changesFrom(
  runner: Runner,
  was: TenantResource,
  becomes: TenantResource,
): Promise<RetentionChanges> {
  const changeOf = (...own: PolicyOverrides[]) =>
    retentionChange(resolvePolicy(was.policy, ...own), resolvePolicy(becomes.policy, ...own));
  const byNamespace: Record<string, RetentionChange> = {};
  let afterName: string | undefined = "";
  while (afterName !== undefined) {
    const page: readonly NamespaceResource[] = await listNamespaceResources(
      runner,
      was.id,
      afterName,
      PAGE_NAMESPACES,
    );
    for (const { name, policy } of page) byNamespace[name] = changeOf(policy);
    afterName = page.length === PAGE_NAMESPACES ? page.at(-1)?.name : undefined;
  }
  return { byNamespace, others: changeOf() };
}

/** Records that one statement examines, in some milliseconds; statements of other tenants may run in between. */
const PAGE_RECORDS = 1000;
/** The preview stops this long before the call's deadline, so that its answer arrives in time. */
const REPLY_MARGIN_MS = 1000;
/** A preview is for people, who wait no longer than this, even with a later deadline. */
const MAX_PREVIEW_MS = 20_000;

/**
 * Returns what re-stamping would do to a tenant's records, or to one namespace's. Examines records page by page until the
 * call's time is up; `truncated` if that was too short.
 *
 * @throws Refusal as for a new call, if the call's principal has expired.
 */
async function retentionEffect(
  runner: Runner,
  tenantId: number,
  namespace: string | undefined,
  changes: RetentionChanges,
  asked: Call,
): Promise<RetentionEffect> {
  let call = asked;
  const atMs = Math.min(call.atMs - REPLY_MARGIN_MS, performance.now() + MAX_PREVIEW_MS);
  const counts = { recordsChanged: 0n, recordsForgotten: 0n, ambiguousForgotten: 0n, recordsExamined: 0n };
  const found = { ...counts, truncated: false };
  for await (const name of namespacesOf(runner, tenantId, namespace)) {
    const change = changeFor(changes, name);
    let afterKey: string | undefined = change && "";
    while (change !== undefined && afterKey !== undefined) {
      if (isExpired({ atMs, cancelled: call.cancelled })) {
        return create(RetentionEffectSchema, { ...found, truncated: true });
      }
      if (isOutdated(call)) call = await call.again();
      const range = { tenantId, namespace: name, afterKey, limit: PAGE_RECORDS };
      const page = await previewPage(runner, range, change);
      found.recordsExamined += BigInt(page.examined);
      found.recordsChanged += BigInt(page.changed);
      found.recordsForgotten += BigInt(page.forgotten);
      found.ambiguousForgotten += BigInt(page.ambiguousForgotten);
      afterKey = page.examined === PAGE_RECORDS ? page.lastKey : undefined;
    }
  }
  return create(RetentionEffectSchema, found);
}

/** Returns one namespace, or all of the tenant's, one after another. */
async function* namespacesOf(
  runner: Runner,
  tenantId: number,
  only: string | undefined,
): AsyncIterable<string> {
  let name = only ?? (await nextNamespace(runner, tenantId, ""));
  while (name !== undefined) {
    yield name;
    name = only === undefined ? await nextNamespace(runner, tenantId, name) : undefined;
  }
}
