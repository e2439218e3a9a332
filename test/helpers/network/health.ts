import { createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Addresses } from "../../../server/src/server.ts";
import { Health } from "./standard-services.ts";

/** Statuses of grpc.health.v1. */
export const SERVING = 1;
export const NOT_SERVING = 2;

/** A client of grpc.health.v1. */
export interface HealthClient {
  /** Resolves with the status of a service, or of the server if the name is empty. */
  check(service: string): Promise<number>;
  /** Yields the statuses of a service as they change. */
  watch(service: string): AsyncIterator<number>;
}

interface Status {
  readonly status: number;
}

export function healthClient({ grpcPort }: Addresses): HealthClient {
  const transport: Transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` });
  // The service is described at run time, so its methods have no types.
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
