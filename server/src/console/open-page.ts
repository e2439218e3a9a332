import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { ConfiguredIssuer } from "../config/configured-issuer.ts";
import type { CoreParts } from "../core-parts.ts";
import type { Pool } from "../database/pool.ts";
import type { WebPage } from "../transport/http/web-page.ts";
import { createAttempts } from "./attempts.ts";
import { createConsole } from "./console.ts";
import { CONSOLE_DIR, readConsoleFiles } from "./files.ts";
import { createSessions } from "./sessions.ts";
import { createSignIn } from "./sign-in.ts";
import { createConsoleSite } from "./site.ts";

interface PageOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly pool: Pool;
  /** As AuthenticatorOptions. */
  readonly maxAgeMs: number | undefined;
  /** Undefined: no issuer is configured. */
  readonly issuer: ConfiguredIssuer | undefined;
  /** Another directory with the files of the page, for tests. */
  readonly dir: string | undefined;
}

/**
 * Opens the console, a page for tenant admins and operators, who sign in with a key, or at an issuer if one is configured: its
 * sessions, which the authenticator needs, and then the page, which needs the authenticator. Undefined: it is turned off.
 */
export async function openConsolePage({
  config,
  log,
  pool,
  maxAgeMs,
  issuer,
  dir = CONSOLE_DIR,
}: PageOptions) {
  if (!config.ONCEWARD_CONSOLE) return undefined;
  const pepper = config.ONCEWARD_API_KEY_PEPPER;
  const sessions = createSessions({ database: pool, pepper, maxAgeMs });
  const site = createConsoleSite(config);
  const files = await readConsoleFiles(dir);
  const clientId = config.ONCEWARD_CONSOLE_OIDC_CLIENT_ID;
  const issuerClient =
    issuer !== undefined && clientId !== undefined
      ? (await import("./issuer-client.ts")).createIssuerClient(issuer, clientId, config, log)
      : undefined;
  const atIssuer = issuerClient && { issuer: issuerClient, ...(await import("./issuer-sign-in.ts")) };
  return {
    sessions,
    createPage({ pipeline, authenticator }: Pick<CoreParts, "pipeline" | "authenticator">): WebPage {
      const shared = { site, sessions, attempts: createAttempts(), pepper, log };
      const signIn = createSignIn({ ...shared, pipeline });
      const issuerSignIn = atIssuer?.createIssuerSignIn({ ...shared, ...atIssuer, authenticator });
      return createConsole({ site, files, signIn, issuerSignIn, grpcPort: config.ONCEWARD_GRPC_PORT, log });
    },
  };
}
