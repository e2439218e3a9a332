import { hash } from "node:crypto";
import { errors, jwtVerify } from "jose";
import { LRUCache } from "lru-cache";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import { MAX_TOKEN_LENGTH } from "./authorization.ts";
import type { Jwks } from "./jwks.ts";
import type { JwtAlgorithm } from "./jwt-algorithms.ts";
import { type ClaimNames, identityOf, type TokenIdentity } from "./token-identity.ts";

/** Tells whom a token of the configured issuer stands for. */
export interface TokenVerifier {
  /**
   * @throws Refusal CREDENTIAL_INVALID, the same whatever is wrong with it; ISSUER_UNAVAILABLE, as `Jwks.keyFor`.
   */
  verify(token: string): Promise<TokenIdentity>;
}

export interface TokenVerifierOptions {
  readonly jwks: Pick<Jwks, "keyFor" | "current">;
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly JwtAlgorithm[];
  readonly claims: ClaimNames;
  /** Told what the caller isn't: which check failed, in nothing of the token's own words. */
  readonly onRefused: (why: string) => void;
}

/** How far the issuer's clock may be from ours. */
const CLOCK_TOLERANCE_S = 10;
/** Some hundred bytes for most tokens, and up to 8 KiB of namespaces' names. */
const MAX_REMEMBERED_BYTES = 16 * 1024 * 1024;
/** What is kept of a token beside its claims: its digest, and the cache's own. */
const ENTRY_BYTES = 300;

/** What a token was found to be: true until it expires or the issuer publishes other keys. */
interface Verified {
  readonly identity: TokenIdentity;
  readonly expiresAtMs: number;
  readonly keys: object | undefined;
}

/**
 * Remembers what it verified, for a signature costs more than the rest of a call. Tokens are compared with this machine's
 * clock: their issuer knows no other.
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { jwks, issuer, audience, algorithms, claims, onRefused } = options;
  /** By the digest of the token, so that no token stays in memory. */
  const verified = new LRUCache<string, Verified>({ maxSize: MAX_REMEMBERED_BYTES });

  async function check(token: string): Promise<Verified> {
    // Checked against the keys as they are now, at the least: other ones that come meanwhile are looked up once more.
    const keys = jwks.current();
    const { payload } = await jwtVerify(token, jwks.keyFor, {
      issuer,
      audience,
      algorithms: [...algorithms],
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ["exp", "sub"],
    });
    const identity = identityOf(payload, claims);
    if (identity === undefined) throw new errors.JWTInvalid("its claims stand for nobody");
    return { identity, expiresAtMs: ((payload.exp ?? 0) + CLOCK_TOLERANCE_S) * 1000, keys };
  }

  return {
    async verify(token) {
      if (token.length > MAX_TOKEN_LENGTH) throw credentialInvalid();
      const digest = hash("sha256", token, "base64url");
      const known = verified.get(digest);
      if (known !== undefined && known.keys === jwks.current() && Date.now() < known.expiresAtMs) {
        return known.identity;
      }
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

/** A message may quote the token; a code does not, and the claims that jose checks have names of its own. */
function describe(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) return `${error.code} ${error.claim}`;
  return error instanceof errors.JOSEError ? error.code : "ERR_UNUSABLE_KEY";
}
