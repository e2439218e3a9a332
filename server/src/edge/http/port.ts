import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TlsOptions } from "node:tls";
import { type AddressLimit, trackConnections } from "../connections.ts";
import type { Tls } from "../tls.ts";

/** A port that speaks HTTP/1.1, over TLS if there is some. */
export interface HttpPort {
  readonly server: Pick<Server, "maxRequestsPerSocket" | "maxConnections" | "timeout">;
  /** Listens, and answers on which port. */
  listen(host: string, port: number): Promise<number>;
  /** Takes no new connection, lets requests finish for so long, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

/** `options` are Node's own, and come before those of TLS. */
export function createHttpPort(
  options: ServerOptions & TlsOptions,
  tls: Tls | undefined,
  onRequest: RequestListener,
  limit: AddressLimit,
): HttpPort {
  const server =
    tls === undefined ? createServer(options, onRequest) : createTlsServer(options, tls, onRequest);
  const connections = trackConnections(server, limit);

  return {
    server,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close: (graceMs) =>
      new Promise((resolve) => {
        const timer = setTimeout(connections.destroy, graceMs);
        server.close(() => {
          clearTimeout(timer);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function createTlsServer(
  options: ServerOptions & TlsOptions,
  tls: Tls,
  onRequest: RequestListener,
): SecureServer {
  const server = createSecureServer({ ...tls.options, ...options }, onRequest);
  tls.follow(server);
  return server;
}
