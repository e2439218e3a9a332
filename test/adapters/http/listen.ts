import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { App } from "./http-world.ts";

/** Makes a server listen on a free loopback port. */
export async function listen(server: Server): Promise<App> {
  let closed = Promise.withResolvers<void>();
  server.on("connection", (socket) => {
    socket.once("close", () => {
      closed.resolve();
      closed = Promise.withResolvers();
    });
  });
  if (!server.listening) server.listen(0, "127.0.0.1");
  if (!server.listening) await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connectionClosed: () => closed.promise,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
