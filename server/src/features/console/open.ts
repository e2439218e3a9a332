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
  /** Undefined: the console offers no sign-in at the issuer. */
  readonly issuer: IssuerClient | undefined;
  readonly log: Logger;
  /** The directory with the page; undefined: CONSOLE_DIR. */
  readonly dir: string | undefined;
}

/** What the console needs of the replica that serves it. */
export interface ConsoleParts {
  readonly pipeline: Pick<Pipeline, "authenticate">;
  readonly authenticator: Pick<Authenticator, "authenticateIdentity">;
}

/**
 * Reads the files of the console's page into memory, and returns a function that creates the console as configured.
 *
 * @throws Error as `readConsoleFiles`.
 */
export async function openConsole(
  config: Config,
  { sessions, issuer, log, dir = CONSOLE_DIR }: OpenConsoleOptions,
): Promise<(parts: ConsoleParts) => Console> {
  const site = createConsoleSite({
    origin: config.ONCEWARD_CONSOLE_ORIGIN,
    tls: config.ONCEWARD_TLS_CERT !== undefined,
    loopback: isLoopback(config.ONCEWARD_HOST),
  });
  const files = await readConsoleFiles(dir);
  const shared = { site, sessions, attempts: createAttempts(), pepper: config.ONCEWARD_API_KEY_PEPPER };
  return ({ pipeline, authenticator }) => {
    const signIn = createSignIn({ ...shared, pipeline });
    const issuerSignIn = issuer && createIssuerSignIn({ ...shared, issuer, authenticator, log });
    return createConsole({ site, files, signIn, issuerSignIn, log });
  };
}
