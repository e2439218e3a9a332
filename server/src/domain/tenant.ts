import { createHash } from "node:crypto";
import type { ApiKey_Role } from "../gen/onceward/v1/tenant_pb.ts";
import type { Deadline } from "./operation.ts";
import { type PolicyInForce, type PolicyOverrides, resolvePolicy } from "./policy.ts";
import type { NarrowedBounds } from "./policy-bounds.ts";
import { NO_QUOTAS, type Quotas, type StoredTotals } from "./quotas.ts";
import { Refusal } from "./refusal.ts";

/** What a credential may do. */
export type Role = Exclude<keyof typeof ApiKey_Role, "UNSPECIFIED">;

/** A tenant, a customer of the service, as calls need it. */
export interface Tenant {
  /** Names the tenant in every row. A restored database may give the id to another tenant; the `uid` distinguishes them. */
  readonly id: number;
  /** Random, and therefore never used twice. */
  readonly uid: string;
  readonly name: string;
  readonly suspended: boolean;
  /** Whether the tenant is moving to another installation. */
  readonly moving: boolean;
  /** The address at which it is served since it has moved; undefined: it is not known here. */
  readonly movedTo?: string | undefined;
  /**
   * When records of its were lost the last time in an installation that it has moved from, in milliseconds since the Unix
   * epoch; undefined: never.
   */
  readonly recordsLostAtMs?: number | undefined;
  readonly cacheEpoch: CacheEpoch;
  /** The fields of a policy that the tenant sets. */
  readonly overrides: PolicyOverrides;
  /** The policy of every namespace that has none of its own. */
  readonly policy: PolicyInForce;
  readonly namespaces: NamespacePolicies;
  readonly quotas: Quotas;
  readonly totals: StoredTotals;
}

/** The policies of a tenant's namespaces. Each is loaded when a call first needs it. */
export interface NamespacePolicies {
  isLoaded(namespace: string): boolean;
  /**
   * Loads policies; resolves once they are loaded.
   *
   * @throws Refusal as the batcher and the pool.
   */
  load(namespaces: readonly string[], deadline: Deadline): Promise<void>;
  /**
   * Returns the policy that a namespace follows: its own, or the tenant's if the namespace was never declared.
   *
   * @throws PolicyNotLoaded if the policy is not loaded, or was evicted.
   */
  policyOf(namespace: string, tenant: Pick<Tenant, "overrides" | "policy">): PolicyInForce;
}

/** A client gets it only if the policy is evicted as soon as it is loaded; the next attempt loads it again. */
const RETRY_AFTER_MS = 100;

/** The refusal of a call whose policy has to be loaded first; the call can be retried. */
export class PolicyNotLoaded extends Refusal {
  readonly namespace: string;

  constructor(namespace: string) {
    super("OVERLOADED", "The namespace's policy is not loaded on this replica.", {
      retryAfterMs: RETRY_AFTER_MS,
    });
    this.namespace = namespace;
  }
}

/** The namespaces of a tenant that never declared one. */
export const NEVER_DECLARED: NamespacePolicies = {
  isLoaded: () => true,
  load: () => Promise.resolve(),
  policyOf: (_, { policy }) => policy,
};

/** Says which cached completions of a tenant are valid, as the database said at one moment. */
export interface CacheEpoch {
  /** The part of a cached completion's name that `cacheScope` returns. A new scope invalidates all completions of the old one. */
  readonly scope: string;
  /** When the scope was read: just before the query, in milliseconds of `performance.now()`. */
  readonly askedAtMs: number;
  /** The database's clock when the scope was read, in milliseconds since the Unix epoch: at `askedAtMs` or shortly after. */
  readonly databaseTimeMs: number;
}

/** Half of SHA-256, as 22 characters: a part of every cached completion's name, which takes memory. */
const SCOPE_BYTES = 16;

/**
 * Returns the scope of a tenant's cached completions, made of identities that are never used twice. A restore or a promotion
 * of the database changes the installation id, a tenant created after it has a new uid, and forgetting a record raises the
 * generation.
 */
export function cacheScope(of: {
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

/** The credential of a caller. Instants are milliseconds since the Unix epoch. */
export interface CredentialFacts {
  readonly kind: "API_KEY" | "TOKEN";
  /** Undefined: it does not expire. */
  readonly expiresAtMs: number | undefined;
}

/** The caller, as its credential says. An operator belongs to no tenant. */
export type Principal = {
  /** The id of the API key, or the subject of the token. */
  readonly actor: string;
  /**
   * When the principal expires, in milliseconds of `performance.now()`. The credential, the tenant or its policy may have
   * changed by then: the call has to be authorized again before anything is decided for it.
   */
  readonly goodUntilMs: number;
  /** Undefined: an anonymous caller, or a command of the server. */
  readonly credential?: CredentialFacts;
} & (
  | {
      readonly role: "CALLER" | "TENANT_ADMIN";
      readonly tenant: Tenant;
      /** The only namespaces that the credential is valid for; undefined: all. */
      readonly namespaces: ReadonlySet<string> | undefined;
    }
  | { readonly role: "OPERATOR" }
);

/** Returns the policy of a namespace that is loaded. @throws as NamespacePolicies.policyOf. */
export function policyFor(tenant: Tenant, namespace: string): PolicyInForce {
  return tenant.namespaces.policyOf(namespace, tenant);
}

/** Returns the epoch of the caller's tenant; undefined for an operator, who has no records. */
export function cacheEpochOf(principal: Principal): CacheEpoch | undefined {
  return principal.role === "OPERATOR" ? undefined : principal.tenant.cacheEpoch;
}

/**
 * Returns the time of the database's clock, in milliseconds since the Unix epoch and to some milliseconds: as read with the
 * principal's tenant, plus the time since then. NaN for an operator.
 */
export function databaseNowMs(principal: Principal): number {
  const epoch = cacheEpochOf(principal);
  return epoch === undefined ? Number.NaN : epoch.databaseTimeMs + performance.now() - epoch.askedAtMs;
}

const NOTHING_STORED: StoredTotals = { records: 0, storedBytes: 0 };

/** The fields that have a value unless another one is given. */
type Defaulted = "moving" | "namespaces" | "quotas" | "totals";

/** Returns a tenant made of stored values. */
export function makeTenant(
  stored: Omit<Tenant, "policy" | Defaulted> & Partial<Pick<Tenant, Defaulted>>,
): Tenant {
  const { moving = false, quotas = NO_QUOTAS, totals = NOTHING_STORED, namespaces = NEVER_DECLARED } = stored;
  return { ...stored, moving, policy: resolvePolicy(stored.overrides), namespaces, quotas, totals };
}

/**
 * Refuses the calls of a tenant that is not served here.
 *
 * @throws Refusal TENANT_MOVING, TENANT_SUSPENDED.
 */
export function requireServed(tenant: Pick<Tenant, "moving" | "suspended" | "movedTo">): void {
  const { moving, suspended, movedTo } = tenant;
  if (moving) {
    throw new Refusal("TENANT_MOVING", "The tenant is moving to another installation.", {
      retryAfterMs: MOVING_RETRY_AFTER_MS,
      ...(movedTo !== undefined && { metadata: { address: movedTo } }),
    });
  }
  if (suspended) throw new Refusal("TENANT_SUSPENDED", "The operator has suspended this tenant.");
}

/** Short, so that callers come soon after a redirection; a move takes longer than 10 s, and many wait for it. */
const MOVING_RETRY_AFTER_MS = 2000;

/**
 * A tenant's state: served; refused until it is resumed; refused while it moves to another installation; or
 * refused while its records are removed.
 */
export type TenantState = "ACTIVE" | "SUSPENDED" | "MOVING" | "DELETING";

/** A tenant as its administrators and operators see it. Instants are milliseconds since the Unix epoch. */
export interface TenantResource {
  readonly id: number;
  readonly name: string;
  readonly state: TenantState;
  /** Of a moving tenant, as Tenant.movedTo. */
  readonly movedTo?: string | undefined;
  /** The fields that the tenant sets; an undefined one is the service's default. */
  readonly policy: PolicyOverrides;
  /** The bounds that the operator sets; an undefined one is the contract's. */
  readonly bounds: NarrowedBounds;
  readonly quotas: Quotas;
  readonly createdAtMs: number;
  /** Raised by every change; the etag is made of it. */
  readonly version: number;
}

/** A declared namespace as its administrators see it. */
export interface NamespaceResource {
  readonly tenantId: number;
  readonly name: string;
  /** The fields that the namespace sets; an undefined one is the tenant's. */
  readonly policy: PolicyOverrides;
  readonly createdAtMs: number;
  /** As TenantResource.version. */
  readonly version: number;
}

/** An API key as it is shown: without its secret. Instants are milliseconds since the Unix epoch. */
export interface ApiKeyResource {
  readonly id: string;
  readonly role: Role;
  /** The owner's name for the key. */
  readonly label: string;
  /** The only namespaces that the key is valid for; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  readonly createdAtMs: number;
  /** Undefined: it doesn't expire. */
  readonly expiresAtMs: number | undefined;
  /** Undefined: it wasn't revoked. */
  readonly revokedAtMs: number | undefined;
  /** When the key was last used, to the hour; undefined: no use is stored. */
  readonly lastUsedAtMs: number | undefined;
}
