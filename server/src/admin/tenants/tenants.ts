import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import { revokeApiKeys } from "../../database/tenants/api-keys.ts";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import {
  findTenantResource,
  insertTenant,
  listTenantResources,
  lockTenant,
  updateTenant,
} from "../../database/tenants/tenants.ts";
import { MAX_REASON_BYTES } from "../../domain/limits.ts";
import { fieldsOf } from "../../domain/policy.ts";
import { boundsInForce, type NarrowedBounds } from "../../domain/policy-bounds.ts";
import { completeQuotas } from "../../domain/quotas.ts";
import { invalidRequest, Refusal } from "../../domain/refusal.ts";
import { POLICY_SETTLES_MS } from "../../domain/statement-times.ts";
import { requireServed, type TenantResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import {
  type CreateTenantRequest,
  CreateTenantResponseSchema,
  type DeleteTenantRequest,
  DeleteTenantResponseSchema,
  ListTenantsResponseSchema,
  OperatorServiceGetTenantResponseSchema,
  ResumeTenantResponseSchema,
  SuspendTenantResponseSchema,
  type UpdateTenantLimitsRequest,
  UpdateTenantLimitsResponseSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { TenantSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { maskedFields } from "../field-messages.ts";
import { insertRecordJob } from "../jobs/record-jobs.ts";
import { BOUND_MESSAGES, parsePolicy, QUOTA_MESSAGES } from "../namespaces/policy-messages.ts";
import { listPage } from "../pages.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import { checkEtag, tenantEtag, tenantMessage } from "./tenant-messages.ts";

/** Returns the RPCs that read and create tenants. */
export function createTenants({
  pool,
  pageTokens,
}: AdministrationParts): OperatorRpcs<"getTenant" | "listTenants" | "createTenant"> {
  return {
    async getTenant({ name }) {
      const violations = new Violations();
      violations.name("name", name);
      violations.throwIfAny();
      const tenant = await findTenantResource(pool, name);
      if (tenant === undefined) throw tenantNotFound();
      return create(OperatorServiceGetTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },

    async listTenants(request) {
      const { messages, nextPageToken } = await listPage(request, {
        pageTokens,
        scope: ["ListTenants"],
        schema: TenantSchema,
        find: ([afterName = ""], limit) => listTenantResources(pool, afterName, limit),
        messageOf: tenantMessage,
        cursorOf: ({ name }) => [name],
      });
      return create(ListTenantsResponseSchema, { tenants: messages, nextPageToken });
    },

    async createTenant(request, call) {
      const asked = parseNewTenant(request);
      const tenant = await pool.transaction(async (transaction) => {
        const made = await insertTenant(transaction, asked);
        if (made === undefined) {
          throw new Refusal(
            "TENANT_EXISTS",
            "A tenant of that name exists, or its records are still being removed.",
          );
        }
        await recordChange(transaction, call, {
          action: "CreateTenant",
          target: `tenant ${made.name}`,
          tenant: made,
          after: { policy: fieldsOf(made.policy), ...limitsSnapshot(made) },
        });
        return made;
      });
      return create(CreateTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },
  };
}

/** Returns the RPCs that change and delete tenants. */
export function createTenantChanges({
  pool,
  changes,
  databaseClock,
}: AdministrationParts): OperatorRpcs<
  "updateTenantLimits" | "suspendTenant" | "resumeTenant" | "deleteTenant"
> {
  /** Makes a change in a transaction, and lets every replica know. Returns the tenant's message. */
  async function changed(change: (transaction: Runner) => Promise<TenantResource>) {
    const tenant = await pool.transaction(change);
    changes.tenantChanged(tenant.id);
    return { tenant: tenantMessage(tenant) };
  }

  return {
    async updateTenantLimits(request, call) {
      const violations = new Violations();
      violations.name("name", request.name);
      const asked = parseLimits(request, violations);
      const masked = maskedLimits(request.updateMask, request, violations);
      violations.throwIfAny();
      const merge = (was: TenantResource) => mergeLimits(was, asked, masked);
      const limited = await changed((transaction) => changeLimits(transaction, call, request, merge));
      return create(UpdateTenantLimitsResponseSchema, limited);
    },

    async suspendTenant(request, call) {
      checkNameAndReason(request);
      const change = { ...request, action: "SuspendTenant", state: "SUSPENDED", notImported: false } as const;
      return create(
        SuspendTenantResponseSchema,
        await changed((transaction) => changeState(transaction, call, change)),
      );
    },

    async resumeTenant(request, call) {
      checkNameAndReason(request);
      const change = { ...request, action: "ResumeTenant", state: "ACTIVE" } as const;
      return create(
        ResumeTenantResponseSchema,
        await changed((transaction) => changeState(transaction, call, change)),
      );
    },

    async deleteTenant(request, call) {
      checkNameAndReason(request);
      return create(
        DeleteTenantResponseSchema,
        await changed((transaction) => startDeletion(transaction, call, request, databaseClock.latestMs())),
      );
    },
  };
}

/** Parses a request for a tenant. @throws Refusal INVALID_REQUEST with every violation. */
function parseNewTenant({
  tenant,
}: CreateTenantRequest): Pick<TenantResource, "name" | "policy" | "bounds" | "quotas"> {
  const violations = new Violations();
  const name = tenant?.name ?? "";
  violations.name("tenant.name", name);
  const limits = parseLimits(tenant ?? {}, violations);
  checkBounds(limits.bounds, violations);
  const policy = parsePolicy(tenant?.policy, boundsInForce(limits.bounds), violations);
  violations.throwIfAny();
  return { name, policy, ...limits };
}

/** What an operator sets of a tenant: the limits of its policies and of its use. */
type Limits = Pick<TenantResource, "bounds" | "quotas">;

/** The fields of a request that sets limits. */
type LimitMessages = Partial<Pick<UpdateTenantLimitsRequest, "policyBounds" | "quotas">>;

/** Returns the limits that a request sets. Adds a violation for everything that is beyond what the contract allows. */
function parseLimits({ policyBounds, quotas }: LimitMessages, violations: Violations): Limits {
  return {
    bounds: BOUND_MESSAGES.parse(policyBounds, violations),
    quotas: completeQuotas(QUOTA_MESSAGES.parse(quotas, violations)),
  };
}

/** Returns the paths of the limits that an update changes; see `maskedFields`. */
function maskedLimits(
  mask: FieldMask | undefined,
  { policyBounds, quotas }: LimitMessages,
  violations: Violations,
): ReadonlySet<string> {
  const paths = [...BOUND_MESSAGES.paths, ...QUOTA_MESSAGES.paths];
  const set = [...BOUND_MESSAGES.pathsOf(policyBounds), ...QUOTA_MESSAGES.pathsOf(quotas)];
  return maskedFields(mask, { paths, set }, violations);
}

/** Returns the limits whose path is in the mask from `asked`, and the others from `was`. */
function mergeLimits(was: Limits, asked: Limits, mask: ReadonlySet<string>): Limits {
  return {
    bounds: BOUND_MESSAGES.merge(was.bounds, asked.bounds, mask),
    quotas: completeQuotas(QUOTA_MESSAGES.merge(was.quotas, asked.quotas, mask)),
  };
}

/** Adds a violation for bounds that no retention is within. */
function checkBounds({ minKeyRetentionS, maxKeyRetentionS }: NarrowedBounds, violations: Violations): void {
  if (minKeyRetentionS === undefined || maxKeyRetentionS === undefined) return;
  if (minKeyRetentionS > maxKeyRetentionS) {
    violations.add("policy_bounds.min_key_retention", "must not be longer than max_key_retention");
  }
}

/** Stores a tenant's new limits with their audit event, or only returns them for `validate_only`. */
async function changeLimits(
  transaction: Runner,
  call: Call,
  request: UpdateTenantLimitsRequest,
  merge: (was: TenantResource) => Limits,
): Promise<TenantResource> {
  const was = await lockChangeableTenant(transaction, request.name);
  checkEtag(request.etag, tenantEtag(was));
  const becomes = { ...was, ...merge(was) };
  const violations = new Violations();
  checkBounds(becomes.bounds, violations);
  violations.throwIfAny();
  if (request.validateOnly) return becomes;

  await recordChange(transaction, call, {
    action: "UpdateTenantLimits",
    target: `tenant ${was.name}`,
    tenant: was,
    before: limitsSnapshot(was),
    after: limitsSnapshot(becomes),
  });
  return updateTenant(transaction, becomes);
}

/** A request to suspend or to resume a tenant. */
interface StateChange {
  readonly action: string;
  readonly name: string;
  readonly reason: string;
  readonly state: "ACTIVE" | "SUSPENDED";
  readonly notImported: boolean;
}

/** Suspends or resumes a tenant, with an audit event, unless it has that state already. */
async function changeState(transaction: Runner, call: Call, change: StateChange): Promise<TenantResource> {
  const { action, name, reason, state } = change;
  const was = await lockKeptTenant(transaction, name);
  if (was.state === state) return was;
  if (was.state === "MOVING") checkMoving(change);
  await recordChange(transaction, call, {
    action,
    target: `tenant ${was.name}`,
    tenant: was,
    reason,
    before: { state: was.state },
    after: { state },
  });
  return updateTenant(transaction, { ...was, state });
}

/**
 * Checks a change of a moving tenant. Suspending it would end its move, and a later resumption would need no
 * confirmation.
 *
 * @throws Refusal INVALID_REQUEST.
 */
function checkMoving({ state, notImported }: StateChange): void {
  if (state === "SUSPENDED") {
    throw invalidRequest("name", "names a tenant that is moving: its calls are refused already");
  }
  if (!notImported) {
    throw invalidRequest(
      "not_imported",
      "must be true for a tenant that is moving: if another installation has imported it, both would grant the same keys",
    );
  }
}

/** Refuses a tenant's calls from now on, and starts the job that deletes its records and then the tenant. */
async function startDeletion(
  transaction: Runner,
  call: Call,
  { name, etag, reason }: DeleteTenantRequest,
  latestMs: number | undefined,
): Promise<TenantResource> {
  const was = await lockTenantByName(transaction, name);
  // A repeated call has the etag from before the deletion.
  if (was.state === "DELETING") return was;
  checkEtag(etag, tenantEtag(was));
  await revokeApiKeys(transaction, was.id);
  // The job is delayed because the tenant can still claim until every replica refuses it.
  const job = await insertRecordJob(
    transaction,
    { tenantId: was.id, namespace: undefined, work: { kind: "DELETE" }, delayMs: POLICY_SETTLES_MS },
    latestMs,
  );
  await recordChange(transaction, call, {
    action: "DeleteTenant",
    target: `tenant ${was.name}`,
    tenant: was,
    reason,
    before: { state: was.state },
    after: { state: "DELETING", recordJob: String(job.id) },
  });
  return updateTenant(transaction, { ...was, state: "DELETING" });
}

/** @throws Refusal INVALID_REQUEST for a name that no tenant can have, or a reason that is too long. */
function checkNameAndReason({ name, reason }: { readonly name: string; readonly reason: string }): void {
  const violations = new Violations();
  violations.name("name", name);
  violations.prose("reason", reason, { maxBytes: MAX_REASON_BYTES });
  violations.throwIfAny();
}

/**
 * Returns the tenant of that name, and locks it until the transaction ends.
 *
 * @throws Refusal TENANT_NOT_FOUND.
 */
async function lockTenantByName(transaction: Runner, name: string): Promise<TenantResource> {
  const tenant = await lockTenant(transaction, name);
  if (tenant === undefined) throw tenantNotFound();
  return tenant;
}

/**
 * Returns the same as `lockTenantByName`, for a tenant that is not being deleted.
 *
 * @throws Refusal TENANT_NOT_FOUND, also for a tenant that is being deleted.
 */
async function lockKeptTenant(transaction: Runner, name: string): Promise<TenantResource> {
  const tenant = await lockTenantByName(transaction, name);
  if (tenant.state === "DELETING") throw tenantNotFound();
  return tenant;
}

/**
 * Returns the same as `lockKeptTenant`, for a tenant whose data may change: the export of a moving one may have been written
 * already, so that a change would be lost.
 *
 * @throws Refusal TENANT_NOT_FOUND, TENANT_MOVING.
 */
export async function lockChangeableTenant(transaction: Runner, name: string): Promise<TenantResource> {
  const tenant = await lockKeptTenant(transaction, name);
  requireServed({ moving: tenant.state === "MOVING", suspended: false });
  return tenant;
}

function tenantNotFound(): Refusal {
  return new Refusal("TENANT_NOT_FOUND", "There is no such tenant, or it is being deleted.");
}

/** Returns a tenant's limits as audit events show them. */
function limitsSnapshot({ bounds, quotas }: Pick<TenantResource, "bounds" | "quotas">): Snapshot {
  return { policyBounds: { ...bounds }, quotas: { ...quotas } };
}
