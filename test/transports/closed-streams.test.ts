import type { Http2Stream } from "node:http2";
import { createOnceward } from "@onceward/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../helpers/database.ts";
import { onHttp2Stream } from "../helpers/http2-streams.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { createTenant } from "../helpers/tenants.ts";

let database: TestDatabase;
let server: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startTestServer(database.url);
});

afterAll(async () => {
  await server?.stop();
  await database?.drop();
});

test.each(["server", "client"] as const)(
  "a stream of the %s that closed holds nothing of its call",
  async (side) => {
    const streams: Http2Stream[] = [];
    onHttp2Stream(side, (stream) => streams.push(stream));
    const { apiKey } = await createTenant(database);
    await using client = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
    await client.calls.claim({ namespace: "charges", key: "order-1" });
    // One that is refused, too.
    await expect(client.calls.claim({ namespace: "charges", key: "" })).rejects.toThrow("key");
    await expect.poll(() => streams.map(({ closed }) => closed)).toEqual([true, true]);
    // Without any, an error that comes late would end the process.
    await expect.poll(() => streams.map((stream) => stream.eventNames())).toEqual([["error"], ["error"]]);
  },
);
