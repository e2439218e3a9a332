import type { Logger } from "pino";
import type { Authenticator } from "../../core/auth/authenticate.ts";
import type { Config } from "../../core/config/config.ts";
import type { ConfiguredIssuer } from "../../core/config/configured-issuer.ts";
import { isLoopback, isTrustedUrl } from "../../core/config/formats.ts";
import type { Feature } from "../../core/feature.ts";
import type { Pipeline } from "../../core/transport/pipeline.ts";
import { createAttempts } from "./attempts.ts";
import { type Console, createConsole } from "./console.ts";
import { CONSOLE_DIR, readConsoleFiles } from "./files.ts";
import { createIssuerClient, type IssuerClient } from "./issuer-client.ts";
import { createSessions, type Sessions } from "./sessions.ts";
import { createSignIn } from "./sign-in.ts";
import { createConsoleSite } from "./site.ts";

/** What the console needs of the replica that serves it. */
interface ConsoleParts {
  readonly pipeline: Pick<Pipeline, "authenticate">;
  readonly authenticator: Pick<Authenticator, "authenticateIdentity">;
}

/**
 * Reads the files of the console's page into memory, and returns a function that creates the console as configured.
 *
 * @throws Error as `readConsoleFiles`.
 */
async function openConsole(
  config: Config,
  {
    sessions,
    issuer,
    log,
    dir = CONSOLE_DIR,
  }: {
    readonly sessions: Sessions;
    /** Undefined: the console offers no sign-in at the issuer. */
    readonly issuer: IssuerClient | undefined;
    readonly log: Logger;
    /** The directory with the page; undefined: CONSOLE_DIR. */
    readonly dir: string | undefined;
  },
): Promise<(parts: ConsoleParts) => Console> {
  const site = createConsoleSite({
    origin: config.ONCEWARD_CONSOLE_ORIGIN,
    tls: config.ONCEWARD_TLS_CERT !== undefined,
    loopback: isLoopback(config.ONCEWARD_HOST),
  });
  const files = await readConsoleFiles(dir);
  const atIssuer = issuer && { issuer, ...(await import("./issuer-sign-in.ts")) };
  const shared = { site, sessions, attempts: createAttempts(), pepper: config.ONCEWARD_API_KEY_PEPPER };
  return ({ pipeline, authenticator }) => {
    const signIn = createSignIn({ ...shared, pipeline });
    const issuerSignIn = atIssuer?.createIssuerSignIn({
      ...shared,
      issuer: atIssuer.issuer,
      authenticator,
      log,
    });
    return createConsole({ site, files, signIn, issuerSignIn, log });
  };
}

/** Returns the console's client of the issuer as configured; undefined: the console offers no sign-in at the issuer. */
function configuredIssuerClient(
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

/** Serves the console: a page for tenant admins and operators, who sign in. */
export const webConsole: Feature = {
  async openPage({ config, log, pool, maxAgeMs, issuer, dir }) {
    if (!config.ONCEWARD_CONSOLE) return undefined;
    const sessions = createSessions({ database: pool, pepper: config.ONCEWARD_API_KEY_PEPPER, maxAgeMs });
    const create = await openConsole(config, {
      sessions,
      issuer: configuredIssuerClient(config, issuer, log),
      log,
      dir,
    });
    return { sessions, createPage: create };
  },
};
