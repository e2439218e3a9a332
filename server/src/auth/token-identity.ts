import type { JWTPayload } from "jose";
import { NAMESPACE_PATTERN } from "../domain/limits.ts";

/** Whom a token stands for, as its claims say. An operator belongs to no tenant. */
export type TokenIdentity =
  | {
      readonly role: "CALLER" | "TENANT_ADMIN";
      /** The token's subject. */
      readonly actor: string;
      readonly tenantName: string;
      /** The only namespaces it is good for; undefined: all. */
      readonly namespaces: ReadonlySet<string> | undefined;
    }
  | { readonly role: "OPERATOR"; readonly actor: string };

/** The names of the claims that say it. */
export interface ClaimNames {
  readonly tenant: string;
  readonly role: string;
  readonly namespaces: string;
}

/** Stands in the audit. https://openid.net/specs/openid-connect-core-1_0.html#IDToken has the length. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;

/**
 * Reads an identity from the claims of a token that was verified. Undefined if a claim is missing or malformed, or if they
 * contradict each other: a role is never guessed, and a limit that can't be read never becomes none.
 */
export function identityOf(claims: JWTPayload, names: ClaimNames): TokenIdentity | undefined {
  const { sub: actor, [names.tenant]: tenantName, [names.namespaces]: listed } = claims;
  if (typeof actor !== "string" || !SUBJECT.test(actor)) return undefined;
  const role = claims[names.role] ?? "CALLER";
  if (role === "OPERATOR") {
    // Whoever may say which tenant somebody belongs to need not be whoever makes operators: never both in one token.
    return tenantName === undefined && listed === undefined ? { role, actor } : undefined;
  }
  if (role !== "CALLER" && role !== "TENANT_ADMIN") return undefined;
  // Tenants' names are of the same form as namespaces'.
  if (typeof tenantName !== "string" || !NAMESPACE_PATTERN.test(tenantName)) return undefined;
  if (listed !== undefined && !isListOfNames(listed)) return undefined;
  return { role, actor, tenantName, namespaces: listed && new Set(listed) };
}

function isListOfNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}
