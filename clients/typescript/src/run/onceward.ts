import { hostname } from "node:os";
import { truncateUtf8 } from "../errors/violations.ts";
import { type ConnectionOptions, connect } from "../transport/connection.ts";
import { MAX_OWNER_BYTES } from "../wire/limits.ts";
import { type ClientOptions, checkClientOptions, Onceward } from "./client.ts";
import { disconnected, type GuardOffOptions, isGuardOff } from "./guard-switch.ts";

export { Onceward } from "./client.ts";

/** The service's address and credential, the defaults of all runs, and the observers of their events. */
export type OncewardOptions = ClientOptions & (ConnectionOptions | GuardOffOptions);

/**
 * Creates a client of the service over gRPC, with one connection per address. Create one per process and share it.
 * Connections are opened by the first call.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function createOnceward(options: OncewardOptions): Onceward {
  checkClientOptions(options);
  const { owner = truncateUtf8(`${hostname()}/${process.pid}`, MAX_OWNER_BYTES) } = options;
  const connection = isGuardOff(options) ? disconnected() : connect(options);
  return new Onceward(connection, { ...options, owner });
}
