import { type AddressInfo, createServer, type Socket } from "node:net";

/** Where native gRPC's connections come from. */
export interface GrpcListener {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  /** The port, once it listens. */
  port(): number | undefined;
  /** Takes no new connection; resolves once the last one has ended, at the latest after so long: then all are cut. */
  close(graceMs: number): Promise<void>;
}

/** Each costs memory and a file descriptor; a client needs one. */
const MAX_CONNECTIONS = 10_000;

/**
 * Hands each connection to grpc-js, which would listen by itself, but takes any number of connections, and cannot end
 * those that are left after a drain (its forceShutdown knows none of them where channelz is off).
 */
export function createGrpcListener(accept: (socket: Socket) => void): GrpcListener {
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    accept(socket);
  });
  listener.maxConnections = MAX_CONNECTIONS;
  let boundPort: number | undefined;

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        listener.once("error", reject);
        listener.listen(port, host, () => {
          listener.off("error", reject);
          boundPort = (listener.address() as AddressInfo).port;
          resolve(boundPort);
        });
      }),
    port: () => boundPort,
    close: (graceMs) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => {
          for (const socket of sockets) socket.destroy();
        }, graceMs);
        listener.close(() => {
          clearTimeout(timer);
          resolve();
        });
      }),
  };
}
