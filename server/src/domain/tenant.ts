import { type Policy, type PolicyOverrides, resolvePolicy } from "./policy.ts";

/** What a credential may do. */
export type Role = "CALLER" | "TENANT_ADMIN" | "OPERATOR";

/** A customer of the service, with the policies of its namespaces. */
export interface Tenant {
  /** Names the tenant in every row; never reused. */
  readonly id: number;
  readonly name: string;
  readonly suspended: boolean;
  readonly copies: CopyTerms;
  /** Of every namespace that has no policy of its own. */
  readonly policy: Policy;
  readonly namespacePolicies: ReadonlyMap<string, Policy>;
}

/** Which copies of a tenant's records may be answered from, as the database said at one moment. */
export interface CopyTerms {
  /** Part of the name of every copy: bumped where those that there are must not be found any more. */
  readonly generation: number;
  /** Just before the database was asked, in `performance.now()` milliseconds. */
  readonly askedAtMs: number;
  /** What the database's clock said then or after, in milliseconds since the Unix epoch. */
  readonly databaseTimeMs: number;
}

/** Who is calling, as its credential says. An operator belongs to no tenant. */
export type Principal =
  | {
      readonly role: "CALLER" | "TENANT_ADMIN";
      readonly keyId: string;
      readonly tenant: Tenant;
      /** The only namespaces this credential is good for; undefined: all. */
      readonly namespaces: ReadonlySet<string> | undefined;
    }
  | { readonly role: "OPERATOR"; readonly keyId: string };

/** The policy that a namespace follows: its own, or the tenant's if it was never declared. */
export function policyFor(tenant: Tenant, namespace: string): Policy {
  return tenant.namespacePolicies.get(namespace) ?? tenant.policy;
}

/** Puts a tenant together from what is stored. */
export function makeTenant(stored: {
  readonly id: number;
  readonly name: string;
  readonly suspended: boolean;
  readonly copies: CopyTerms;
  readonly overrides: PolicyOverrides;
  readonly namespaceOverrides: Iterable<readonly [namespace: string, overrides: PolicyOverrides]>;
}): Tenant {
  const namespacePolicies = new Map<string, Policy>();
  for (const [namespace, overrides] of stored.namespaceOverrides) {
    namespacePolicies.set(namespace, resolvePolicy(stored.overrides, overrides));
  }
  const { id, name, suspended, copies } = stored;
  return { id, name, suspended, copies, policy: resolvePolicy(stored.overrides), namespacePolicies };
}
