import type { Transport } from "@connectrpc/connect";
import { OncewardError } from "../errors/errors.ts";
import type { Connection } from "./transport-options.ts";

/**
 * Returns a connection whose code is still being loaded: HTTP/2 and all that needs it are half of what a client loads, and
 * a program can start in the meantime. Calls wait for it.
 */
export function connectLate(load: () => Promise<Connection>): Connection {
  let loaded: Connection | undefined;
  let closed = false;
  const loading = load().then((connection) => {
    loaded = connection;
    return connection;
  });
  // The calls report a failure to load; a client without calls has none.
  loading.catch(() => {});
  const ready = async (): Promise<Transport> => {
    const { transport } = await loading;
    if (closed) throw new OncewardError("CLOSED", "The client is closed.");
    return transport;
  };
  return {
    transport: {
      unary: (...call) =>
        loaded?.transport.unary(...call) ?? ready().then((transport) => transport.unary(...call)),
      stream: (...call) =>
        loaded?.transport.stream(...call) ?? ready().then((transport) => transport.stream(...call)),
    },
    close: () => {
      closed = true;
      loaded?.close();
    },
  };
}
