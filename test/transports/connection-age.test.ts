import { expect, onTestFinished, test } from "vitest";
import { type Claimant, saysUnavailable, startLoad } from "../support/calls/claim-load.ts";
import { connectClient } from "../support/calls/clients.ts";
import { grpcJsClient } from "../support/network/grpc-js-client.ts";
import { onHttp2Stream } from "../support/network/http2-streams.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** GOAWAYs that each client gets. */
const GOAWAYS = 3;

const { database, server } = useServer({ ONCEWARD_CONNECTION_AGE: "1s" });

test.each<[string, (apiKey: string) => Claimant & { close?(): void }]>([
  ["connect-node", (apiKey) => connectClient(server, apiKey)],
  ["grpc-js", (apiKey) => grpcJsClient(server, apiKey)],
])(
  "a busy client of %s gets one GOAWAY after another, and each of its claims is granted once",
  async (_name, connect) => {
    const client = connect((await createTenant(database)).apiKey);
    onTestFinished(() => client.close?.());
    const sessions = new Set<unknown>();
    onHttp2Stream("server", ({ session }) => sessions.add(session));
    const load = startLoad(client, 8, "retry UNAVAILABLE");
    await expect.poll(() => sessions.size, { timeout: 30_000 }).toBeGreaterThan(GOAWAYS);
    await load.stop();
    expect(load.errors.filter((error) => !saysUnavailable(error)).map(String)).toEqual([]);
    expect(new Set(load.acknowledged.values()).size).toBe(load.acknowledged.size);
  },
);
