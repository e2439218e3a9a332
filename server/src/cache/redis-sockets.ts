import type { Socket } from "node:net";
import { AbstractConnector } from "ioredis";

/**
 * Lets every socket of ioredis fail more than once.
 *
 * The library listens for one error of a socket. Over TLS there may be two: one of a certificate that is refused, or of
 * an alert, and one of what was under way. Nobody would hear the second, which would end the process; and it says
 * nothing, for the connection has been given up by then. All its sockets pass through this property, also those that no
 * option reaches: what asks sentinels, and a cluster's subscriber.
 *
 * @see https://github.com/redis/ioredis/pull/962
 */
export function surviveSecondErrors(): void {
  const sockets = new WeakMap<AbstractConnector, Socket>();
  Object.defineProperty(AbstractConnector.prototype, "stream", {
    configurable: true,
    get(this: AbstractConnector) {
      return sockets.get(this);
    },
    set(this: AbstractConnector, socket: Socket) {
      socket.on("error", () => {});
      sockets.set(this, socket);
    },
  });
}
