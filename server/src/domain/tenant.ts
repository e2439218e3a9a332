import { createHash } from "node:crypto";
import type { Deadline } from "./deadline.ts";
import { type Policy, type PolicyOverrides, resolvePolicy } from "./policy.ts";
import { NO_QUOTAS, type Quotas, type StoredTotals } from "./quotas.ts";

/** What a credential may do. */
export type Role = "CALLER" | "TENANT_ADMIN" | "OPERATOR";

/** A customer of the service. */
export interface Tenant {
  /** Names the tenant in every row. A restore of the database can take it back: what outlives that goes by the `uid`. */
  readonly id: number;
  /** Random, and so never given out twice. */
  readonly uid: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly cacheEpoch: CacheEpoch;
  /** What the tenant sets. */
  readonly overrides: PolicyOverrides;
  /** Of every namespace that has no policy of its own. */
  readonly policy: Policy;
  readonly namespaces: NamespacePolicies;
  readonly quotas: Quotas;
  readonly totals: StoredTotals;
}

/** The policies of a tenant's namespaces, as far as they are loaded: a namespace's is when it is first called for. */
export interface NamespacePolicies {
  isLoaded(namespace: string): boolean;
  /**
   * Loads policies; resolves once they are loaded.
   *
   * @throws Refusal as the batcher and the pool.
   */
  load(namespaces: readonly string[], deadline: Deadline): Promise<void>;
  /**
   * The policy that a namespace follows: its own, or the tenant's if it was never declared.
   *
   * @throws Refusal OVERLOADED if it is not loaded (any more): the call can be made again.
   */
  policyOf(namespace: string, tenant: Pick<Tenant, "overrides" | "policy">): Policy;
}

/** Of a tenant that never declared one. */
export const NEVER_DECLARED: NamespacePolicies = {
  isLoaded: () => true,
  load: () => Promise.resolve(),
  policyOf: (_, { policy }) => policy,
};

/** Which copies of a tenant's records may be answered from, as the database said at one moment. */
export interface CacheEpoch {
  /**
   * Names the copies that may be found, as `copyScope` makes it: another one once those that exist must not be found any more.
   */
  readonly scope: string;
  /** Just before the database was asked, in `performance.now()` milliseconds. */
  readonly askedAtMs: number;
  /** What the database's clock said then or after, in milliseconds since the Unix epoch. */
  readonly databaseTimeMs: number;
}

/** Half of SHA-256, as 22 characters: a part of every copy's name, which memory pays for. */
const SCOPE_BYTES = 16;

/**
 * Names what may be copied of a tenant, by identities that are never given out twice. A restore or a promotion of the database
 * gives another installation id, a tenant made after it another uid, and forgetting a record another generation.
 */
export function copyScope(of: {
  readonly installationId: string;
  readonly tenantUid: string;
  readonly generation: number;
}): string {
  return createHash("sha256")
    .update(`${of.installationId}:${of.tenantUid}:${of.generation}`)
    .digest()
    .subarray(0, SCOPE_BYTES)
    .toString("base64url");
}

/** Who is calling, as its credential says. An operator belongs to no tenant. */
export type Principal = {
  /** The id of the API key, or the subject of the token. */
  readonly actor: string;
  /**
   * Until when something may be decided by this, in `performance.now()` milliseconds. After it the credential, the tenant
   * or its policy may have changed for longer than the contract allows: the call has to be judged again first.
   */
  readonly goodUntilMs: number;
} & (
  | {
      readonly role: "CALLER" | "TENANT_ADMIN";
      readonly tenant: Tenant;
      /** The only namespaces this credential is good for; undefined: all. */
      readonly namespaces: ReadonlySet<string> | undefined;
    }
  | { readonly role: "OPERATOR" }
);

/** @see NamespacePolicies.policyOf */
export function policyFor(tenant: Tenant, namespace: string): Policy {
  return tenant.namespaces.policyOf(namespace, tenant);
}

/** Undefined for an operator, who has no records. */
export function cacheEpochOf(principal: Principal): CacheEpoch | undefined {
  return principal.role === "OPERATOR" ? undefined : principal.tenant.cacheEpoch;
}

const NOTHING_STORED: StoredTotals = { records: 0, storedBytes: 0 };

/** Puts a tenant together from what is stored. */
export function makeTenant(stored: {
  readonly id: number;
  readonly uid: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly cacheEpoch: CacheEpoch;
  readonly overrides: PolicyOverrides;
  readonly namespaces?: NamespacePolicies;
  readonly quotas?: Quotas;
  readonly totals?: StoredTotals;
}): Tenant {
  const { quotas = NO_QUOTAS, totals = NOTHING_STORED, namespaces = NEVER_DECLARED } = stored;
  return { ...stored, policy: resolvePolicy(stored.overrides), namespaces, quotas, totals };
}
