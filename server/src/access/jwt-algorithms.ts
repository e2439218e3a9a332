/**
 * Signature algorithms of tokens that can be configured: those with a private key, which only the issuer has.
 * Of RFC 7518 the HMAC algorithms (`HS256` and others) and `none` are excluded, because the published keys
 * would be enough to forge a token.
 */
export const JWT_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

/** An algorithm, as written in a token's header. */
export type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number];
