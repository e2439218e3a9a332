import type { Logger } from "pino";
import { createJwks } from "./core/auth/jwks.ts";
import { createTokenVerifier, type TokenVerifier } from "./core/auth/jwt.ts";
import type { Config } from "./core/config/config.ts";
import { isTrustedUrl } from "./core/config/formats.ts";
import { openTls, type Tls, type TlsOptions } from "./core/transport/tls.ts";
import { createIssuerClient, type IssuerClient } from "./features/console/issuer-client.ts";

interface TokensOptions {
  readonly log: Logger;
  /** As JwksOptions. */
  readonly onFailed: (error: unknown) => void;
  /** As JwksOptions. */
  readonly cooldownMs?: number | undefined;
}

/** The longest time until a token with a new key is accepted. */
const JWKS_COOLDOWN_MS = 5000;

/** The issuer of tokens. */
export interface ConfiguredIssuer {
  readonly tokens: TokenVerifier;
  /** Undefined: the console offers no sign-in at the issuer. */
  readonly people: IssuerClient | undefined;
}

/**
 * Returns the issuer of tokens as configured; undefined if tokens are not accepted. Its keys are fetched in the
 * background: a server starts without them.
 */
export function configuredIssuer(
  config: Config,
  { log, onFailed, cooldownMs = JWKS_COOLDOWN_MS }: TokensOptions,
): ConfiguredIssuer | undefined {
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
  const clientId = config.ONCEWARD_CONSOLE ? config.ONCEWARD_CONSOLE_OIDC_CLIENT_ID : undefined;
  return {
    tokens: verifierFor(audience),
    people:
      clientId === undefined
        ? undefined
        : createIssuerClient({
            issuer,
            clientId,
            clientSecret: config.ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET,
            scopes: config.ONCEWARD_CONSOLE_OIDC_SCOPES,
            isTrustedUrl,
            idTokens: verifierFor(clientId, clientId),
            cooldownMs,
            onRefused: (why) => log.info({ why }, "the issuer, or its answer, did not sign a person in"),
            onFailed: (error) => log.warn({ err: error }, "signing in at the issuer failed"),
          }),
  };
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
