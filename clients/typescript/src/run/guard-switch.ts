import type { Transport } from "@connectrpc/connect";
import { OncewardError } from "../errors/errors.ts";
import { refusedField } from "../errors/violations.ts";
import type { Connection } from "../transport/transport-options.ts";
import { warn } from "./events.ts";

/** The options of a client that guards nothing, for development without a service. */
export interface GuardOffOptions {
  /** See {@link ClientOptions}. */
  readonly guard: "off-in-development";
  /** Not used. Default: none. */
  readonly address?: unknown;
  /** Not used. Default: none. */
  readonly apiKey?: unknown;
}

/** The reason of runs and calls without a guard. */
export const GUARD_OFF = "GUARD_OFF";

/** Returns the error of a call that needs the service. */
export function guardOff(): OncewardError {
  return new OncewardError(GUARD_OFF, 'The client was created with guard: "off-in-development".');
}

/** Returns whether the options switch the guard off. @throws InvalidRequestError for any other value than "on". */
export function isGuardOff(options: { readonly guard?: unknown }): options is GuardOffOptions {
  const { guard = "on" } = options;
  if (guard !== "on" && guard !== "off-in-development")
    throw refusedField("guard", 'must be "on" or "off-in-development"');
  return guard === "off-in-development";
}

/**
 * Returns a connection whose calls all fail with GUARD_OFF, and warns.
 *
 * @throws InvalidRequestError in production: an operation that runs twice there can't be undone.
 */
export function disconnected(): Connection {
  // biome-ignore lint/style/noProcessEnv: the one variable by which programs name a production environment.
  if (globalThis.process?.env?.NODE_ENV === "production")
    throw refusedField("guard", 'must be "on" while NODE_ENV is "production"');
  warn(
    "The guard is off: functions run on every delivery, and nothing is stored. For development only.",
    "ONCEWARD_GUARD_OFF",
  );
  const refuse = () => Promise.reject(guardOff());
  const transport: Transport = { unary: refuse, stream: refuse };
  return { transport, close: () => {} };
}
