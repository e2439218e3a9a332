import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy on loopback, whose connections can go silent as those of a frozen host do. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** The open connections stay open, and forward nothing from now on, in neither direction. New ones work. */
  readonly silence: () => void;
}

/** Starts a proxy. @param targetPort the port on loopback that it forwards to. */
export async function startProxy(targetPort: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(targetPort, "127.0.0.1");
    forward(client, target);
    forward(target, client);
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Forwards the bytes and the end of a connection; an error of either ends both. */
function forward(from: Socket, to: Socket): void {
  from.setNoDelay().pipe(to);
  from.on("error", () => to.destroy());
}
