import type { Transport } from "@connectrpc/connect";
import { errorFromCall, isRetryable } from "../errors/mapping.ts";
import type { Connection } from "./transport-options.ts";

/** More than a tenant leaves in one client's life: answers open no more connections. */
const MAX_FOLLOWED = 4;

/**
 * Returns a connection that follows a tenant to its new home, as TENANT_MOVING names it: the refused call is made there at once,
 * within its own timeout, and so are later calls, until that home gives no answer.
 *
 * - Only the scheme of every configured address is followed: never from TLS to plain text, and never from or to a socket.
 * - A call asks no home twice, so that homes that name each other end it.
 * - An address at which the tenant is not known, or no service is, leaves the old home's refusal in force, which is retried.
 *
 * @param connectTo connects to the replicas of one home, with the client's own credential and TLS settings.
 */
export function followMoves(
  origins: readonly string[],
  connectTo: (origins: readonly string[]) => Connection,
): Connection {
  const configured = connectTo(origins);
  const homes = new Map(origins.map((origin) => [origin, configured]));
  let current = configured;

  function homeAt(address = ""): Connection | undefined {
    const [scheme = "none"] = /^https?:/.exec(address) ?? [];
    const isAccepted =
      origins.every((each) => each.startsWith(scheme)) && URL.parse(address)?.origin === address;
    if (isAccepted && !homes.has(address) && homes.size < origins.length + MAX_FOLLOWED)
      homes.set(address, connectTo([address]));
    return isAccepted ? homes.get(address) : undefined;
  }

  const unary: Transport["unary"] = async (method, signal, timeoutMs = 0, ...rest) => {
    const endsAtMs = performance.now() + timeoutMs;
    const asked = new Set<Connection>();
    let refusal: unknown;
    for (let home = current, leftMs = timeoutMs; ; leftMs = Math.max(1, endsAtMs - performance.now())) {
      asked.add(home);
      try {
        const limitMs = timeoutMs > 0 ? leftMs : undefined;
        const response = await home.transport.unary(method, signal, limitMs, ...rest);
        if (asked.size > 1) current = home;
        return response;
      } catch (cause) {
        const error = errorFromCall(cause);
        const isMoving = error.reason === "TENANT_MOVING";
        const isLost = error.reason === "NO_ANSWER" && !signal?.aborted;
        const isUnknown = error.reason === "CREDENTIAL_INVALID" || (isLost && !isRetryable(error));
        if ((isLost || isUnknown) && home === current) current = configured;
        if (isUnknown && refusal !== undefined) throw refusal;
        const next = isMoving ? homeAt(error.metadata.address) : isUnknown ? configured : undefined;
        if (next === undefined || asked.has(next)) throw cause;
        if (isMoving) refusal = cause;
        home = next;
      }
    }
  };

  return {
    transport: { unary, stream: (...call) => current.transport.stream(...call) },
    close() {
      for (const { close } of new Set(homes.values())) close();
    },
  };
}
