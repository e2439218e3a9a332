import type { Server, Socket } from "node:net";

/** The connections of a server, whatever they have got to: Node's own lists have none that is still in its TLS handshake. */
export interface Connections {
  /** Cuts them all. */
  destroy(): void;
}

/** Follows a server from before it listens. */
export function trackConnections(server: Server): Connections {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return {
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
