import { hash } from "node:crypto";
import { errors, type JWTPayload, jwtVerify } from "jose";
import { LRUCache } from "lru-cache";
import { MAX_TIMESTAMP_MS, NAMESPACE_PATTERN } from "../domain/limits.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import { MAX_TOKEN_LENGTH } from "./api-key.ts";
import type { Jwks } from "./jwks.ts";
import type { JwtAlgorithm } from "./jwt-algorithms.ts";

/** Verifies tokens of the configured issuer. */
export type TokenVerifier = ReturnType<typeof createTokenVerifier>;

/** The identity that a token's claims name. An operator belongs to no tenant. */
type TokenIdentity =
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
interface ClaimNames {
  readonly tenant: string;
  readonly role: string;
  readonly namespaces: string;
}

/** The identity of a valid token, and when the token expires, in milliseconds since the Unix epoch. */
export type VerifiedIdentity = TokenIdentity & { readonly expiresAtMs: number };

export interface TokenVerifierOptions {
  readonly jwks: Pick<Jwks, "keyFor" | "current">;
  readonly issuer: string;
  readonly audience: string;
  /**
   * The client that a token's `azp` must name, if the token has one; undefined: any.
   * https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
   */
  readonly authorizedParty?: string | undefined;
  readonly algorithms: readonly JwtAlgorithm[];
  readonly claims: ClaimNames;
  /** Called with the check that failed, which the caller does not see. Contains no text of the token. */
  readonly onRefused: (why: string) => void;
}

/** Accepted difference between the issuer's clock and ours: a token expires later by it. */
const CLOCK_TOLERANCE_S = 10;
/** Most tokens take some hundred bytes; the names of namespaces can take up to 8 KiB. */
const MAX_CACHE_BYTES = 16 * 1024 * 1024;
/** Memory of an entry beside the claims: the digest, and the cache's own data. */
const ENTRY_BYTES = 300;

/** The result of a verification: valid until the token expires or the issuer publishes other keys. */
interface Verified {
  readonly identity: VerifiedIdentity;
  readonly keys: object | undefined;
}

/**
 * Creates a verifier with a cache, because verifying a signature costs more than the rest of a call. The
 * times in a token are compared with this machine's clock, because the issuer does not know the database's.
 */
export function createTokenVerifier(options: TokenVerifierOptions) {
  const { jwks, issuer, audience, authorizedParty, algorithms, claims, onRefused } = options;
  /** By the digest of the token, so that no token stays in memory. */
  const verified = new LRUCache<string, Verified>({ maxSize: MAX_CACHE_BYTES });

  async function check(token: string): Promise<Verified> {
    // Read before the verification: if the keys change during it, the next call verifies the token again.
    const keys = jwks.current();
    const { payload } = await jwtVerify(token, jwks.keyFor, {
      issuer,
      audience,
      algorithms: [...algorithms],
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ["exp", "sub"],
    });
    const { azp } = payload;
    if (authorizedParty !== undefined && azp !== undefined && azp !== authorizedParty)
      throw new errors.JWTClaimValidationFailed("the token was issued for another client", payload, "azp");
    const identity = identityOf(payload, claims);
    if (identity === undefined) throw new errors.JWTInvalid("the claims name no valid identity");
    const expiresAtMs = Math.min((payload.exp ?? 0) * 1000, MAX_TIMESTAMP_MS);
    return { identity: { ...identity, expiresAtMs }, keys };
  }

  return {
    issuer,
    /**
     * Returns the identity that a token proves.
     *
     * @throws Refusal CREDENTIAL_INVALID, with the same text for every defect; ISSUER_UNAVAILABLE, as `Jwks.keyFor`.
     */
    async verify(token: string): Promise<VerifiedIdentity> {
      if (token.length > MAX_TOKEN_LENGTH) throw credentialInvalid();
      const digest = hash("sha256", token, "base64url");
      const known = verified.get(digest);
      const earliestMs = Date.now() - CLOCK_TOLERANCE_S * 1000;
      if (known !== undefined && known.keys === jwks.current() && earliestMs < known.identity.expiresAtMs)
        return known.identity;
      try {
        const entry = await check(token);
        verified.set(digest, entry, { size: ENTRY_BYTES + token.length });
        return entry.identity;
      } catch (error) {
        verified.delete(digest);
        if (error instanceof Refusal) throw error;
        onRefused(describe(error));
        throw credentialInvalid(error);
      }
    },
  };
}

/**
 * Returns a code, and for a failed claim its name as jose knows it: a message of jose may quote the token.
 */
function describe(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) return `${error.code} ${error.claim}`;
  return error instanceof errors.JOSEError ? error.code : "ERR_UNUSABLE_KEY";
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
