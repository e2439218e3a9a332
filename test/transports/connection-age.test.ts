import diagnostics from "node:diagnostics_channel";
import type { ServerHttp2Stream } from "node:http2";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Claimant, saysUnavailable, startLoad } from "../helpers/claim-load.ts";
import { connectClient } from "../helpers/clients.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database.ts";
import { grpcJsClient } from "../helpers/grpc-js-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { createTenant } from "../helpers/tenants.ts";

const STREAM_CREATED = "http2.server.stream.created";
/** So often the client is asked to leave. */
const GOAWAYS = 3;

let database: TestDatabase;
let server: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startTestServer(database.url, { ONCEWARD_CONNECTION_AGE: "1s" });
});

afterAll(async () => {
  await server?.stop();
  await database?.drop();
});

/** The connections that the server takes calls on from now. */
function watchConnections(): ReadonlySet<unknown> {
  const sessions = new Set<unknown>();
  const onStream = (message: unknown) => {
    sessions.add((message as { readonly stream: ServerHttp2Stream }).stream.session);
  };
  diagnostics.subscribe(STREAM_CREATED, onStream);
  onTestFinished(() => {
    diagnostics.unsubscribe(STREAM_CREATED, onStream);
  });
  return sessions;
}

test.each<[string, (apiKey: string) => Claimant & { close?(): void }]>([
  ["connect-node", (apiKey) => connectClient(server, apiKey)],
  ["grpc-js", (apiKey) => grpcJsClient(server, apiKey)],
])(
  "a steady client of %s is asked to leave again and again, and every claim of it is granted once",
  async (_name, connect) => {
    const client = connect((await createTenant(database)).apiKey);
    onTestFinished(() => client.close?.());
    const sessions = watchConnections();
    const load = startLoad(client, 8, "retry UNAVAILABLE");
    await expect.poll(() => sessions.size, { timeout: 15_000 }).toBeGreaterThan(GOAWAYS);
    await load.stop();
    expect(load.errors.filter((error) => !saysUnavailable(error)).map(String)).toEqual([]);
    expect(new Set(load.acknowledged.values()).size).toBe(load.acknowledged.size);
  },
);
