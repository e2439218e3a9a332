import { connect } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { IdempotencyService } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";

/** The raw RPCs of IdempotencyService. */
export type IdempotencyClient = Client<typeof IdempotencyService>;

/** Every transport of the service; the contract holds over each. */
export const TRANSPORTS = {
  "native gRPC": (server: Addresses, interceptors: Interceptor[], tls?: ClientTls) =>
    createGrpcTransport({ ...at(server.grpcPort, tls, server.socket), interceptors }),
  "Connect with JSON": (server: Addresses, interceptors: Interceptor[], tls?: ClientTls) =>
    createConnectTransport({
      ...at(server.httpPort, tls),
      httpVersion: "1.1",
      useBinaryFormat: false,
      interceptors,
    }),
  "gRPC-Web": (server: Addresses, interceptors: Interceptor[], tls?: ClientTls) =>
    createGrpcWebTransport({ ...at(server.httpPort, tls), httpVersion: "1.1", interceptors }),
} as const;

/** The authority that a client trusts, and the client's own certificate. */
export type ClientTls = Pick<SecureContextOptions, "ca" | "cert" | "key">;

function at(port: number, tls: ClientTls | undefined, socket?: string) {
  const scheme = tls === undefined ? "http" : "https";
  const nodeOptions =
    tls === undefined && socket !== undefined ? { createConnection: () => connect(socket) } : { ...tls };
  return { baseUrl: `${scheme}://127.0.0.1:${port}`, nodeOptions };
}

export type TransportName = keyof typeof TRANSPORTS;

export const TRANSPORT_NAMES = Object.keys(TRANSPORTS) as readonly TransportName[];

/** Returns a client with a credential; undefined sends none. Uses TLS if it is given. */
export function connectClient(
  server: Addresses,
  apiKey: string | undefined,
  transport: TransportName = "native gRPC",
  tls?: ClientTls,
): IdempotencyClient {
  const authorize: Interceptor = (next) => (request) => {
    if (apiKey !== undefined) request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
  return createClient(IdempotencyService, TRANSPORTS[transport](server, [authorize], tls));
}

/** Returns the header with a call's deadline. Unlike with `timeoutMs`, the client itself measures no time. */
export function timeoutHeader(transport: TransportName, timeoutMs: number): Readonly<Record<string, string>> {
  return transport === "Connect with JSON"
    ? { "connect-timeout-ms": String(timeoutMs) }
    : { "grpc-timeout": `${timeoutMs}m` };
}
