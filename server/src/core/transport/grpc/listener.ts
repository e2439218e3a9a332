import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import { type AddressLimit, trackConnections } from "../connections.ts";
import type { Tls } from "../tls.ts";

/** The TCP or TLS listener of the gRPC port. */
export interface GrpcListener {
  /** Listens; resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  /**
   * Accepts no new connection, and cuts those that are left after `graceMs`; resolves when the last one has
   * ended.
   */
  close(graceMs: number): Promise<void>;
  /** Returns the number of open connections. */
  connections(): number;
}

export interface GrpcListenerOptions extends AddressLimit {
  /** Called with each connection, once HTTP/2 can begin on it. */
  readonly accept: (socket: Socket) => void;
  readonly tls: Tls | undefined;
  /** The longest TLS handshake. */
  readonly handshakeTimeoutMs: number;
}

/** Each connection costs memory and a file descriptor; a client needs one. */
const MAX_CONNECTIONS = 10_000;

/** Creates the listener of the gRPC port. */
export function createGrpcListener(options: GrpcListenerOptions): GrpcListener {
  const { tls, handshakeTimeoutMs, maxPerAddress } = options;
  const accept = (socket: Socket) => {
    if (!socket.destroyed) options.accept(socket);
  };
  const listener =
    tls === undefined ? createServer(accept) : createTlsListener(tls, handshakeTimeoutMs, accept);
  const connections = trackConnections(listener, { maxPerAddress });
  listener.maxConnections = MAX_CONNECTIONS;

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        listener.once("error", reject);
        listener.listen(port, host, () => {
          listener.off("error", reject);
          resolve((listener.address() as AddressInfo).port);
        });
      }),
    close: (graceMs) =>
      new Promise((resolve) => {
        const timer = setTimeout(connections.destroy, graceMs);
        listener.close(() => {
          clearTimeout(timer);
          resolve();
        });
      }),
    connections: connections.count,
  };
}

function createTlsListener(tls: Tls, handshakeTimeout: number, accept: (socket: Socket) => void): Server {
  const options = { ...tls.options, handshakeTimeout, ALPNProtocols: ["h2"] };
  const listener = createSecureServer(options, (socket) => {
    // A peer can break TLS while HTTP/2 does not listen for errors, or no longer does.
    socket.on("error", () => {});
    if (socket.alpnProtocol === "h2") accept(socket);
    else endConnection(socket, handshakeTimeout);
  });
  // Node leaves the connection of a handshake that failed, or took too long, open.
  listener.on("tlsClientError", (_error, socket) => socket.destroy());
  tls.follow(listener);
  return listener;
}

/**
 * Ends the connection of a client that did not negotiate HTTP/2, and cuts it if the client does not end it in
 * time.
 */
function endConnection(socket: Socket, timeoutMs: number): void {
  socket.end();
  socket.resume();
  // Not `socket.setTimeout`: each byte that the client sends would prolong it.
  const timer = setTimeout(() => socket.destroy(), timeoutMs).unref();
  socket.once("close", () => clearTimeout(timer));
}
