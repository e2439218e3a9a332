import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TlsOptions } from "node:tls";
import { type AddressLimit, trackConnections } from "../connections.ts";
import type { Tls } from "../tls.ts";
import { answerInTurns } from "./turns.ts";

/** A port that serves HTTP/1.1, with TLS if it is configured. */
export interface HttpPort {
  readonly server: Pick<Server, "maxRequestsPerSocket" | "maxConnections" | "timeout">;
  /** Listens; resolves with the port. */
  listen(host: string, port: number): Promise<number>;
  /**
   * Accepts no new connection, and cuts the connections that are left after `graceMs`; resolves when none is
   * left.
   */
  close(graceMs: number): Promise<void>;
  /** Returns the number of open connections. */
  connections(): number;
}

/** Creates a port that answers the requests of a connection in turns. Node's `options` override those of `tls`. */
export function createHttpPort(
  options: ServerOptions & TlsOptions,
  tls: Tls | undefined,
  answer: RequestListener,
  limit: AddressLimit,
): HttpPort {
  const onRequest = answerInTurns(answer);
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
    connections: connections.count,
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
