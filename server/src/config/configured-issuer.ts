import type { Logger } from "pino";
import type { Config } from "./config.ts";

/** The longest time until a token with a new key is accepted. */
const JWKS_COOLDOWN_MS = 5000;

/** The issuer of tokens, with its keys. */
export type ConfiguredIssuer = NonNullable<Awaited<ReturnType<typeof configuredIssuer>>>;

/**
 * Returns the issuer of tokens as configured; undefined if tokens are not accepted: then the code that verifies them is not
 * loaded. The issuer's keys are fetched in the background: a server starts without them.
 */
export async function configuredIssuer(
  config: Config,
  {
    log,
    onFailed,
    cooldownMs = JWKS_COOLDOWN_MS,
  }: {
    readonly log: Logger;
    /** As JwksOptions. */
    readonly onFailed: (error: unknown) => void;
    /** As JwksOptions. */
    readonly cooldownMs?: number | undefined;
  },
) {
  const {
    ONCEWARD_JWT_ISSUER: issuer,
    ONCEWARD_JWT_AUDIENCE: audience,
    ONCEWARD_JWT_JWKS_URL: url,
    ONCEWARD_JWT_ALGORITHMS: algorithms,
  } = config;
  // `readConfig` accepts all three or none.
  if (issuer === undefined || audience === undefined || url === undefined) return undefined;
  const [{ createJwks }, { createTokenVerifier }] = await Promise.all([
    import("../access/jwks.ts"),
    import("../access/jwt.ts"),
  ]);
  const jwks = createJwks({ url, cooldownMs, onFailed });
  jwks.warm();
  /** Returns a verifier of tokens for an audience; `authorizedParty`: as TokenVerifierOptions. */
  const verifierFor = (intended: string, authorizedParty?: string) =>
    createTokenVerifier({
      jwks,
      issuer,
      audience: intended,
      authorizedParty,
      algorithms,
      claims: {
        tenant: config.ONCEWARD_JWT_TENANT_CLAIM,
        role: config.ONCEWARD_JWT_ROLE_CLAIM,
        namespaces: config.ONCEWARD_JWT_NAMESPACES_CLAIM,
      },
      onRefused: (why) => log.debug({ why }, "a token was refused"),
    });
  return {
    issuer,
    /** The shortest interval between fetches of the issuer's keys because of a token with an unknown key. */
    cooldownMs,
    /** Verifies the tokens of callers. */
    tokens: verifierFor(audience),
    verifierFor,
  };
}
