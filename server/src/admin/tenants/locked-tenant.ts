import type { Runner } from "../../database/pool.ts";
import { lockTenant } from "../../database/tenants/tenants.ts";
import { MAX_REASON_BYTES } from "../../domain/limits.ts";
import { Refusal } from "../../domain/refusal.ts";
import { requireServed, type TenantResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";

/**
 * Checks a request together with the violations that were found before.
 *
 * @throws Refusal INVALID_REQUEST for those, a name that no tenant can have, or a reason that is too long.
 */
export function checkNameAndReason(
  { name, reason }: Readonly<Record<"name" | "reason", string>>,
  violations = new Violations(),
): void {
  violations.name("name", name);
  violations.prose("reason", reason, { maxBytes: MAX_REASON_BYTES });
  violations.throwIfAny();
}

/**
 * Returns the tenant of that name, and locks it until the transaction ends.
 *
 * @throws Refusal TENANT_NOT_FOUND.
 */
export async function lockTenantByName(transaction: Runner, name: string): Promise<TenantResource> {
  const tenant = await lockTenant(transaction, name);
  if (tenant === undefined) throw tenantNotFound();
  return tenant;
}

/**
 * Returns the same as `lockTenantByName`, for a tenant that is not being deleted.
 *
 * @throws Refusal TENANT_NOT_FOUND, also for a tenant that is being deleted.
 */
export async function lockKeptTenant(transaction: Runner, name: string): Promise<TenantResource> {
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

/** Returns the refusal of a request for a tenant that an operator cannot see. */
export function tenantNotFound(): Refusal {
  return new Refusal("TENANT_NOT_FOUND", "There is no such tenant, or it is being deleted.");
}
