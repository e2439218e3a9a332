import type { Logger } from "pino";
import type { Sessions } from "../../auth/sessions.ts";
import type { Config } from "../../config/config.ts";
import { isLoopback } from "../../config/formats.ts";
import type { Pipeline } from "../pipeline.ts";
import { createAttempts } from "./attempts.ts";
import { type Console, createConsole } from "./console.ts";
import { CONSOLE_DIR, readConsoleFiles } from "./files.ts";
import { createSignIn } from "./sign-in.ts";
import { createConsoleSite } from "./site.ts";

export interface OpenConsoleOptions {
  readonly sessions: Sessions;
  readonly pipeline: Pick<Pipeline, "authenticate">;
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
  { sessions, pipeline, log, dir = CONSOLE_DIR }: OpenConsoleOptions,
): Promise<Console> {
  const site = createConsoleSite({
    origin: config.ONCEWARD_CONSOLE_ORIGIN,
    tls: config.ONCEWARD_TLS_CERT !== undefined,
    loopback: isLoopback(config.ONCEWARD_HOST),
  });
  const files = await readConsoleFiles(dir);
  const signIn = createSignIn({
    site,
    sessions,
    pipeline,
    attempts: createAttempts(),
    pepper: config.ONCEWARD_API_KEY_PEPPER,
  });
  return createConsole({ site, files, signIn, log });
}
