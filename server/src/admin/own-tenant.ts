import type { Call } from "../access/call.ts";
import type { Runner } from "../database/pool.ts";
import { lockTenant } from "../database/tenants/tenants.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import type { Tenant, TenantResource } from "../domain/tenant.ts";
import { Violations } from "../domain/violations.ts";

/** Returns the principal of a call of a tenant's service. */
export function tenantAdmin({ principal }: Call) {
  if (principal.role === "OPERATOR") throw new Error("an operator reached a tenant's service");
  return principal;
}

/**
 * Returns the tenant that a caller administers as a whole.
 *
 * @throws Refusal NAMESPACE_DENIED for a credential that is limited to namespaces.
 */
export function administeredTenant(call: Call): Tenant {
  const principal = tenantAdmin(call);
  if (principal.namespaces !== undefined) {
    throw new Refusal(
      "NAMESPACE_DENIED",
      "The credential is limited to namespaces; this RPC concerns the whole tenant.",
    );
  }
  return principal.tenant;
}

/** Returns the tenant of a caller who may administer this namespace. @throws Refusal NAMESPACE_DENIED. */
export function administeredNamespace(call: Call, namespace: string): Tenant {
  const principal = tenantAdmin(call);
  if (principal.namespaces !== undefined && !principal.namespaces.has(namespace)) {
    throw new Refusal("NAMESPACE_DENIED", "The credential is limited to other namespaces.", {
      metadata: { namespace },
    });
  }
  return principal.tenant;
}

/** Returns the tenant of a caller who may administer each of these namespaces, at least one. @throws Refusal NAMESPACE_DENIED. */
export function administeredNamespaces(call: Call, namespaces: readonly string[]): Tenant {
  const [tenant] = namespaces.map((namespace) => administeredNamespace(call, namespace));
  if (tenant === undefined) throw new Error("no namespace is named");
  return tenant;
}

/**
 * Returns the tenant of a caller who may administer the namespace of this name; if the name is empty, the tenant as a whole.
 * Adds a violation for an invalid name.
 *
 * @throws Refusal NAMESPACE_DENIED.
 */
export function administeredPart(call: Call, namespace: string, violations: Violations): Tenant {
  if (namespace === "") return administeredTenant(call);
  violations.name("namespace", namespace);
  return administeredNamespace(call, namespace);
}

/** Returns the caller's tenant, and locks it until the transaction ends. */
export async function lockOwnTenant(transaction: Runner, { id }: Tenant): Promise<TenantResource> {
  const tenant = await lockTenant(transaction, id);
  // The tenant was just deleted, and its credentials with it.
  if (tenant === undefined) throw credentialInvalid();
  return tenant;
}

/**
 * Returns the tenant of a caller who may administer the namespace of this name.
 *
 * @param field names the name in the request.
 * @throws Refusal INVALID_REQUEST for an invalid name, and for the request's other violations; NAMESPACE_DENIED.
 */
export function tenantOfNamespace(
  name: string,
  field: string,
  call: Call,
  violations = new Violations(),
): Tenant {
  violations.name(field, name);
  violations.throwIfAny();
  return administeredNamespace(call, name);
}
