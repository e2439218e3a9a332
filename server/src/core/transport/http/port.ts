import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer, type Server as SecureServer } from "node:https";
import type { TlsOptions } from "node:tls";
import { type AddressLimit, createPort, type Port } from "../connections.ts";
import type { Tls } from "../tls.ts";
import { answerInTurns } from "./turns.ts";

/** A port that serves HTTP/1.1, with TLS if it is configured. */
export interface HttpPort extends Port {
  readonly server: Pick<Server, "maxRequestsPerSocket" | "maxConnections" | "timeout">;
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
  return { server, ...createPort(server, limit) };
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
