import { hostname } from "node:os";
import { type ClientOptions, checkClientOptions, Onceward } from "./client.ts";
import { type ConnectionOptions, connect } from "../transport/connection.ts";
import { MAX_OWNER_BYTES } from "../wire/limits.ts";
import { truncateUtf8 } from "../errors/violations.ts";

export { Onceward } from "./client.ts";

/** Where the service is, who calls, what holds for every run that does not say otherwise, and who is told. */
export type OncewardOptions = ConnectionOptions & ClientOptions;

/**
 * A client of the service over gRPC: one connection per address, to be shared by the whole process.
 *
 * @throws InvalidRequestError for an option that can't be meant. Connections are opened by the first call.
 */
export function createOnceward(options: OncewardOptions): Onceward {
  checkClientOptions(options);
  const { owner = truncateUtf8(`${hostname()}/${process.pid}`, MAX_OWNER_BYTES) } = options;
  return new Onceward(connect(options), { ...options, owner });
}
