import type { PolicyOverrides } from "./policy.ts";
import type { NarrowedBounds } from "./policy-bounds.ts";
import type { Quotas } from "./quotas.ts";

/** Where a tenant stands: served, refused until it is resumed, or refused for good while its records are removed. */
export type TenantState = "ACTIVE" | "SUSPENDED" | "DELETING";

/** A tenant as its administrator and the operator see it, in milliseconds since the Unix epoch. */
export interface TenantResource {
  readonly id: number;
  readonly name: string;
  readonly state: TenantState;
  /** What the tenant sets; what is undefined is the service's default. */
  readonly policy: PolicyOverrides;
  /** What the operator sets; what is undefined is the contract's. */
  readonly bounds: NarrowedBounds;
  readonly quotas: Quotas;
  readonly createdAtMs: number;
  /** Raised by every change; the etag is made of it. */
  readonly version: number;
}

/** A namespace that was declared. */
export interface NamespaceResource {
  readonly tenantId: number;
  readonly name: string;
  /** What the namespace sets; what is undefined is the tenant's. */
  readonly policy: PolicyOverrides;
  readonly createdAtMs: number;
  /** As TenantResource.version. */
  readonly version: number;
}
