import type { Socket } from "node:net";
import { AbstractConnector } from "ioredis";

/**
 * Ignores the second and later errors of every socket of ioredis.
 *
 * ioredis listens for one error of a socket. Over TLS there can be two: one of a refused certificate or an
 * alert, and one of a write in flight. The second would be unhandled and end the process, although the
 * connection is already closed. All sockets pass through this property, also those that no option of ioredis
 * reaches: connections to sentinels, and a cluster's subscriber.
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
