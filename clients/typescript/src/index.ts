/** The published entry: the client, its errors, and the generated messages, schemas and enums. */

export * from "./portable.ts";
export { createOnceward, type OncewardOptions } from "./run/onceward.ts";
export type { ConnectionOptions } from "./transport/connection.ts";
