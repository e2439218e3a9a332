import type { Logger } from "pino";
import type { Config } from "../../core/config/config.ts";
import type { ConfiguredIssuer } from "../../core/config/configured-issuer.ts";
import { isTrustedUrl } from "../../core/config/formats.ts";
import { createIssuerClient, type IssuerClient } from "./issuer-client.ts";

/** Returns the console's client of the issuer as configured; undefined: the console offers no sign-in at the issuer. */
export function configuredIssuerClient(
  config: Config,
  configured: ConfiguredIssuer | undefined,
  log: Logger,
): IssuerClient | undefined {
  const clientId = config.ONCEWARD_CONSOLE_OIDC_CLIENT_ID;
  if (configured === undefined || clientId === undefined) return undefined;
  const { issuer, cooldownMs, verifierFor } = configured;
  return createIssuerClient({
    issuer,
    clientId,
    clientSecret: config.ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET,
    scopes: config.ONCEWARD_CONSOLE_OIDC_SCOPES,
    isTrustedUrl,
    idTokens: verifierFor(clientId, clientId),
    cooldownMs,
    onRefused: (why) => log.info({ why }, "the issuer, or its answer, did not sign a person in"),
    onFailed: (error) => log.warn({ err: error }, "signing in at the issuer failed"),
  });
}
