import type { Logger } from "pino";
import type { Authenticator } from "../../core/auth/authenticate.ts";
import type { Config } from "../../core/config/config.ts";
import { isLoopback } from "../../core/config/formats.ts";
import type { Pipeline } from "../../core/transport/pipeline.ts";
import { createAttempts } from "./attempts.ts";
import { type Console, createConsole } from "./console.ts";
import { CONSOLE_DIR, readConsoleFiles } from "./files.ts";
import type { IssuerClient } from "./issuer-client.ts";
import { createIssuerSignIn } from "./issuer-sign-in.ts";
import type { Sessions } from "./sessions.ts";
import { createSignIn } from "./sign-in.ts";
import { createConsoleSite } from "./site.ts";

export interface OpenConsoleOptions {
  readonly sessions: Sessions;
  readonly pipeline: Pick<Pipeline, "authenticate">;
  readonly authenticator: Pick<Authenticator, "authenticateIdentity">;
  /** Undefined: the console offers no sign-in at the issuer. */
  readonly issuer: IssuerClient | undefined;
  readonly log: Logger;
  /** The directory with the page; undefined: CONSOLE_DIR. */
  readonly dir: string | undefined;
}

/**
 * Creates the console as configured, with the files of its page in memory.
 *
 * @throws Error as `readConsoleFiles`.
 */
export async function openConsole(
  config: Config,
  { sessions, pipeline, authenticator, issuer, log, dir = CONSOLE_DIR }: OpenConsoleOptions,
): Promise<Console> {
  const site = createConsoleSite({
    origin: config.ONCEWARD_CONSOLE_ORIGIN,
    tls: config.ONCEWARD_TLS_CERT !== undefined,
    loopback: isLoopback(config.ONCEWARD_HOST),
  });
  const files = await readConsoleFiles(dir);
  const shared = { site, sessions, attempts: createAttempts(), pepper: config.ONCEWARD_API_KEY_PEPPER };
  const signIn = createSignIn({ ...shared, pipeline });
  const issuerSignIn = issuer && createIssuerSignIn({ ...shared, issuer, authenticator, log });
  return createConsole({ site, files, signIn, issuerSignIn, log });
}
