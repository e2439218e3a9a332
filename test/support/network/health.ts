import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Health } from "../../../server/src/gen/grpc/health/v1/health_pb.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";

/** Returns a client of grpc.health.v1, without a credential. */
export function healthClient({ grpcPort }: Addresses): Client<typeof Health> {
  return createClient(Health, createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` }));
}
