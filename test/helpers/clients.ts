import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { IdempotencyService } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Addresses } from "../../server/src/server.ts";

/** The raw RPCs of IdempotencyService. */
export type IdempotencyClient = Client<typeof IdempotencyService>;

/** Every way to call the service; the contract holds over each. */
export const TRANSPORTS = {
  "native gRPC": (server: Addresses, interceptors: Interceptor[]) =>
    createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.grpcPort}`, interceptors }),
  "Connect with JSON": (server: Addresses, interceptors: Interceptor[]) =>
    createConnectTransport({
      baseUrl: `http://127.0.0.1:${server.httpPort}`,
      httpVersion: "1.1",
      useBinaryFormat: false,
      interceptors,
    }),
  "gRPC-Web": (server: Addresses, interceptors: Interceptor[]) =>
    createGrpcWebTransport({
      baseUrl: `http://127.0.0.1:${server.httpPort}`,
      httpVersion: "1.1",
      interceptors,
    }),
} as const;

export type TransportName = keyof typeof TRANSPORTS;

/** A client with a credential; undefined sends none. */
export function connectClient(
  server: Addresses,
  apiKey: string | undefined,
  transport: TransportName = "native gRPC",
): IdempotencyClient {
  const authorize: Interceptor = (next) => (request) => {
    if (apiKey !== undefined) request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
  return createClient(IdempotencyService, TRANSPORTS[transport](server, [authorize]));
}

/** The header that a call says with how long it waits; the client itself, unlike with `timeoutMs`, keeps no time. */
export function timeoutHeader(transport: TransportName, timeoutMs: number): Readonly<Record<string, string>> {
  return transport === "Connect with JSON"
    ? { "connect-timeout-ms": String(timeoutMs) }
    : { "grpc-timeout": `${timeoutMs}m` };
}
