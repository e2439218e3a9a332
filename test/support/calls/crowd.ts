import type { Addresses } from "../../../server/src/replica/server.ts";
import { connectClient, type IdempotencyClient } from "./clients.ts";

/**
 * Returns clients with one connection each, spread evenly over the servers. All are connected already, so
 * that calls started together are sent together.
 */
export async function connectCrowd(
  servers: readonly Addresses[],
  apiKey: string,
  size: number,
): Promise<IdempotencyClient[]> {
  const clients = Array.from({ length: size }, (_, index) => {
    const server = servers[index % servers.length];
    if (server === undefined) throw new Error("a crowd needs a server");
    return connectClient(server, apiKey);
  });
  await Promise.all(clients.map((client) => client.lookup({ namespace: "warm-up", key: "connected" })));
  return clients;
}
