import type { JWTPayload } from "jose";
import { NAMESPACE_PATTERN } from "../domain/limits.ts";

/** The identity that a token's claims name. An operator belongs to no tenant. */
export type TokenIdentity =
  | {
      readonly role: "CALLER" | "TENANT_ADMIN";
      /** The token's subject. */
      readonly actor: string;
      readonly tenantName: string;
      /** The namespaces that the token may use; undefined: all. */
      readonly namespaces: ReadonlySet<string> | undefined;
    }
  | { readonly role: "OPERATOR"; readonly actor: string };

/** The configured names of claims. */
export interface ClaimNames {
  readonly tenant: string;
  readonly role: string;
  readonly namespaces: string;
}

/**
 * Recorded in audit events. The length is from https://openid.net/specs/openid-connect-core-1_0.html#IDToken.
 */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

/**
 * Reads the identity from the claims of a verified token. Returns undefined if a claim is missing or
 * malformed, or if claims contradict each other: a role is never guessed, and a malformed limit never means
 * "no limit".
 */
export function identityOf(claims: JWTPayload, names: ClaimNames): TokenIdentity | undefined {
  const { sub: actor, [names.tenant]: tenantName, [names.namespaces]: listed } = claims;
  if (typeof actor !== "string" || !SUBJECT.test(actor)) return undefined;
  const role = claims[names.role] ?? "CALLER";
  if (role === "OPERATOR") {
    // An issuer's rule that assigns tenants may be less trusted than the rule that makes operators: a token
    // has one of the two.
    return tenantName === undefined && listed === undefined ? { role, actor } : undefined;
  }
  if (role !== "CALLER" && role !== "TENANT_ADMIN") return undefined;
  // Names of tenants have the same form as names of namespaces.
  if (typeof tenantName !== "string" || !NAMESPACE_PATTERN.test(tenantName)) return undefined;
  if (listed !== undefined && !isListOfNames(listed)) return undefined;
  return { role, actor, tenantName, namespaces: listed && new Set(listed) };
}

function isListOfNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}
