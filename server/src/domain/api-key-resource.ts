import type { Role } from "./tenant.ts";

/** An API key as it is shown: without its secret. Instants are milliseconds since the Unix epoch. */
export interface ApiKeyResource {
  readonly id: string;
  readonly role: Role;
  /** What its owner calls it. */
  readonly label: string;
  /** The only namespaces it is good for; undefined: all. */
  readonly namespaces: readonly string[] | undefined;
  readonly createdAtMs: number;
  /** Undefined: it doesn't end by itself. */
  readonly expiresAtMs: number | undefined;
  /** Undefined: it wasn't revoked. */
  readonly revokedAtMs: number | undefined;
}
