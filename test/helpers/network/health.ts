import { createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Addresses } from "../../../server/src/server.ts";
import { Health } from "./standard-services.ts";

/** Statuses of grpc.health.v1. */
export const SERVING = 1;
export const NOT_SERVING = 2;

/** A caller of grpc.health.v1; it knows nothing but statuses. */
export interface HealthClient {
  /** The status of a service; empty: of the server. */
  check(service: string): Promise<number>;
  /** The statuses of a service, as they change. */
  watch(service: string): AsyncIterator<number>;
}

interface Status {
  readonly status: number;
}

export function healthClient({ grpcPort }: Addresses): HealthClient {
  const transport: Transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` });
  // The service was described at run time, and so its methods have no types.
  const client = createClient(Health, transport) as unknown as {
    check(request: { service: string }): Promise<Status>;
    watch(request: { service: string }): AsyncIterable<Status>;
  };
  return {
    check: async (service) => (await client.check({ service })).status,
    async *watch(service) {
      for await (const { status } of client.watch({ service })) yield status;
    },
  };
}
