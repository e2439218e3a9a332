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

/** A token with a key of just now has to wait no longer than this. */
const JWKS_COOLDOWN_MS = 5000;

/**
 * What checks tokens as configured; undefined if none are taken. The issuer's keys are fetched in the background: a server
 * starts without them, too.
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
  // All three or none of them: `readConfig` takes nothing else.
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
 * TLS as configured; undefined if there is none.
 *
 * @throws Error as `openTls`.
 */
export function configuredTls(config: Config, options: Omit<TlsOptions, "files">): Tls | undefined {
  const { ONCEWARD_TLS_CERT: certificate, ONCEWARD_TLS_KEY: key, ONCEWARD_TLS_CLIENT_CA: clientCa } = config;
  // Both or none of them: `readConfig` takes nothing else.
  if (certificate === undefined || key === undefined) return undefined;
  return openTls({ ...options, files: { certificate, key, clientCa } });
}
