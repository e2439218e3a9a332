import { Code, type ConnectError } from "@connectrpc/connect";
import { useSyncExternalStore } from "react";
import { readFailure } from "./failure.ts";

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

let known: Known = { connection: "answering", since: new Date() };
const listeners = new Set<() => void>();

/** Marks what the last call showed about the connection. */
export function changeConnection(connection: Connection): void {
  if (connection === known.connection) return;
  known = { connection, since: new Date() };
  for (const listener of listeners) listener();
}

/** Returns the connection, and since when it is so. */
export function useConnection(): Known {
  return useSyncExternalStore(subscribe, () => known);
}

/** Returns whether the last call had no answer. */
export function isUnreachable(): boolean {
  return known.connection === "unreachable";
}

/** Returns whether an error says that no answer came from the service: the browser's own, or a proxy's. */
export function isUnanswered(error: ConnectError): boolean {
  if (error.cause instanceof TypeError) return true;
  return error.code === Code.Unavailable && readFailure(error).reason === "";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
