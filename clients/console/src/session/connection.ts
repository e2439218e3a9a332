import { Code, type ConnectError } from "@connectrpc/connect";
import { readFailure } from "./failure.ts";
import { createStore } from "./store.ts";

/**
 * Whether the page knows the present: the server answers; nothing arrives from it, so that all that is shown is from
 * before; or the session's tenant is suspended, whose calls are refused.
 */
export type Connection = "answering" | "unreachable" | "suspended";

interface Known {
  readonly connection: Connection;
  /** When it became so. */
  readonly since: Date;
}

const known = createStore<Known>({ connection: "answering", since: new Date() });

/** What is the case in a session of a suspended tenant, and the next step. */
export const SUSPENDED = "The tenant is suspended: ask your operator to resume it";

/** Marks what the last call showed about the connection. */
export function changeConnection(connection: Connection): void {
  if (connection !== known.get().connection) known.set({ connection, since: new Date() });
}

/** Returns the connection, and since when it is so. */
export function useConnection(): Known {
  return known.use();
}

/** Returns whether the last call had no answer. */
export function isUnreachable(): boolean {
  return known.get().connection === "unreachable";
}

/** Returns whether an error says that no answer came from the service: the browser's own, or a proxy's. */
export function isUnanswered(error: ConnectError): boolean {
  if (error.cause instanceof TypeError) return true;
  return error.code === Code.Unavailable && readFailure(error).reason === "";
}
