import { loadPolicies } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import { policyFor } from "../../domain/tenant.ts";
import { administeredNamespace } from "../own-tenant.ts";

/** Returns the link to the provider that is in force in each namespace that has one. */
export async function providerLinks(
  namespaces: readonly string[],
  call: Call,
): Promise<ReadonlyMap<string, string>> {
  await loadPolicies(namespaces, call);
  const links = [...new Set(namespaces)].map((name) => {
    const tenant = administeredNamespace(call, name);
    return [name, policyFor(tenant, name).providerLink] as const;
  });
  return new Map(links.filter(([, link]) => link !== ""));
}
