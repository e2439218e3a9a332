import type { Http2Stream } from "node:http2";
import { createClient } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { IdempotencyService } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { credentialOf } from "../../clients/typescript/src/transport/credentials.ts";
import { createUnaryTransport } from "../../clients/typescript/src/transport/grpc-transport.ts";
import { SessionManager } from "../../clients/typescript/src/transport/session-manager.ts";
import { ORDER } from "../support/calls/verbs.ts";
import { onHttp2Stream } from "../support/network/http2-streams.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

test.each(["server", "client"] as const)(
  "a closed stream of the %s holds nothing of its call",
  async (side) => {
    const streams: Http2Stream[] = [];
    onHttp2Stream(side, (stream) => streams.push(stream));
    const { apiKey } = await createTenant(database);
    const sessions = new SessionManager(`http://127.0.0.1:${server.grpcPort}`);
    onTestFinished(() => sessions.abort());
    const client = createClient(IdempotencyService, createUnaryTransport(sessions, credentialOf({ apiKey })));
    await client.claim(ORDER);
    await expect(client.claim({ ...ORDER, key: "" })).rejects.toThrow("key");
    // Opens a BatchStream, which the client ends after a second.
    await client.batch({ items: [{ request: { case: "lookup", value: ORDER } }] }, { timeoutMs: 5000 });
    await expect
      .poll(() => streams.map(({ closed }) => closed), { timeout: 30_000 })
      .toEqual([true, true, true]);
    // Without any listener, a late error would end the process.
    await expect.poll(() => streams.map((stream) => stream.eventNames())).toEqual(Array(3).fill(["error"]));
  },
);
