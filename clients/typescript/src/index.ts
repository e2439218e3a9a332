/** The published entry: the client, its codecs, keys and fingerprints, and the errors that callers of `run` meet. */

export * from "./portable.ts";
export { currentClaim } from "./run/current-claim.ts";
export { createOnceward, type OncewardOptions } from "./run/onceward.ts";
export type { ConnectionOptions } from "./transport/connection.ts";
export type { Pem, TlsOptions } from "./transport/tls-options.ts";
