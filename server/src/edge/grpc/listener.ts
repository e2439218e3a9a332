import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import { type AddressLimit, trackConnections } from "../connections.ts";
import type { Tls } from "../tls.ts";

/** Where native gRPC's connections come from. */
export interface GrpcListener {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  /** The port, once it listens. */
  port(): number | undefined;
  /** Takes no new connection; resolves once the last one has ended, at the latest after so long: then all are cut. */
  close(graceMs: number): Promise<void>;
}

export interface GrpcListenerOptions extends AddressLimit {
  /** Given each connection, ready for HTTP/2. */
  readonly accept: (socket: Socket) => void;
  readonly tls: Tls | undefined;
  readonly handshakeTimeoutMs: number;
}

/** Each costs memory and a file descriptor; a client needs one. */
const MAX_CONNECTIONS = 10_000;

/**
 * Hands each connection to grpc-js, which would listen by itself, but takes any number of connections, and cannot end
 * those that are left after a drain (its forceShutdown knows none of them where channelz is off). TLS ends here as well:
 * grpc-js has no say in which versions it takes, nor in how long a handshake may last.
 */
export function createGrpcListener(options: GrpcListenerOptions): GrpcListener {
  const { tls, handshakeTimeoutMs, maxPerAddress } = options;
  const accept = (socket: Socket) => {
    if (!socket.destroyed) options.accept(socket);
  };
  const listener =
    tls === undefined ? createServer(accept) : createTlsListener(tls, handshakeTimeoutMs, accept);
  const connections = trackConnections(listener, { maxPerAddress });
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
        const timer = setTimeout(connections.destroy, graceMs);
        listener.close(() => {
          clearTimeout(timer);
          resolve();
        });
      }),
  };
}

function createTlsListener(tls: Tls, handshakeTimeout: number, accept: (socket: Socket) => void): Server {
  const options = { ...tls.options, handshakeTimeout, ALPNProtocols: ["h2"] };
  const listener = createSecureServer(options, (socket) => {
    // A peer that breaks TLS after the handshake ends its connection; HTTP/2 may not listen any more, or not yet.
    socket.on("error", () => {});
    accept(socket);
  });
  // A handshake that failed, or took too long: Node leaves it to us to end the connection.
  listener.on("tlsClientError", (_error, socket) => socket.destroy());
  tls.follow(listener);
  return listener;
}
