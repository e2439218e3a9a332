import type { Logger } from "pino";
import { createJwks } from "./auth/jwks.ts";
import { createTokenVerifier, type TokenVerifier } from "./auth/jwt.ts";
import type { Config } from "./config/config.ts";
import { openTls, type Tls, type TlsOptions } from "./edge/tls.ts";

interface TokensOptions {
  readonly log: Logger;
  /** As JwksOptions. */
  readonly onFailed: (error: unknown) => void;
  /** As JwksOptions. */
  readonly cooldownMs?: number | undefined;
}

/** The longest time until a token with a new key is accepted. */
const JWKS_COOLDOWN_MS = 5000;

/**
 * Returns the verifier of tokens as configured; undefined if tokens are not accepted. The issuer's keys are
 * fetched in the background: a server starts without them.
 */
export function configuredTokens(
  config: Config,
  { log, onFailed, cooldownMs = JWKS_COOLDOWN_MS }: TokensOptions,
): TokenVerifier | undefined {
  const {
    ONCEWARD_JWT_ISSUER: issuer,
    ONCEWARD_JWT_AUDIENCE: audience,
    ONCEWARD_JWT_JWKS_URL: url,
    ONCEWARD_JWT_ALGORITHMS: algorithms,
  } = config;
  // `readConfig` accepts all three or none.
  if (issuer === undefined || audience === undefined || url === undefined) return undefined;
  const jwks = createJwks({ url, cooldownMs, onFailed });
  jwks.warm();
  return createTokenVerifier({
    jwks,
    issuer,
    audience,
    algorithms,
    claims: {
      tenant: config.ONCEWARD_JWT_TENANT_CLAIM,
      role: config.ONCEWARD_JWT_ROLE_CLAIM,
      namespaces: config.ONCEWARD_JWT_NAMESPACES_CLAIM,
    },
    onRefused: (why) => log.debug({ why }, "a token was refused"),
  });
}

/**
 * Returns TLS as configured; undefined if it is not configured.
 *
 * @throws Error as `openTls`.
 */
export function configuredTls(config: Config, options: Omit<TlsOptions, "files">): Tls | undefined {
  const { ONCEWARD_TLS_CERT: certificate, ONCEWARD_TLS_KEY: key, ONCEWARD_TLS_CLIENT_CA: clientCa } = config;
  // `readConfig` accepts both or none.
  if (certificate === undefined || key === undefined) return undefined;
  return openTls({ ...options, files: { certificate, key, clientCa } });
}
