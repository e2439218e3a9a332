/**
 * What tokens may be signed with: a private key that only the issuer has. Those of RFC 7518 that share a secret (`HS256`
 * and its like) and `none` are not among them: whoever can read the published keys could make such tokens.
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

/** One of them, as it stands in a token's header. */
export type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number];
