import http2 from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { BatchRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { startTarget, type Target } from "../support/attacks/hostility.ts";
import { openSession } from "../support/network/open-session.ts";
import { callRaw, connectHttp2, framed, grpcHeaders, pathOf } from "../support/network/raw-grpc.ts";
import { openSocket } from "../support/network/raw-socket.ts";
import { readMetrics } from "../support/servers/metrics.ts";

const MIB = 1024 * 1024;
/** Below the limit of Complete, whose replies need no memory of the reply budget: only the inbound budget is in the way. */
const MESSAGE_BYTES = 1.9 * MIB;
/** A server that keeps them all needs 520 MB. */
const MESSAGES = 240;
/**
 * A server with the inbound budget needs up to 60 MB: the messages that the budget admits, 64 KiB of each other one, and
 * pieces whose memory the allocator retains.
 */
const MAX_ADDED_MB = 180;
const MAX_CONNECTIONS = 300;
/** Above the number of connections that earlier tests left open. */
const MORE_CONNECTIONS = 30;

let target: Target;

beforeAll(async () => {
  target = await startTarget(undefined, {
    ONCEWARD_REQUEST_TIMEOUT: "20s",
    ONCEWARD_CONNECTIONS_PER_ADDRESS: String(MAX_CONNECTIONS),
  });
});

afterAll(() => target?.end());

/** A message of an earlier test keeps its memory, or waits for some, until the server sees that its connection has ended. */
beforeEach(async () => {
  const callsInFlight = async () => (await readMetrics(target.server)).get("onceward_calls_in_flight");
  await expect.poll(callsInFlight).toBe(0);
});

afterEach(() => target.expectUnharmed());

/** Returns a message of so many bytes without its last one. */
function unfinished(bytes: number): Buffer {
  const body = Buffer.alloc(4 + bytes);
  body.writeUInt32BE(bytes, 1);
  return body;
}

/** The server's memory is read until it has not grown for so many times. */
const LOOKS = 10;
const LOOK_EVERY_MS = 60;

/** Returns the most memory that the server uses in addition, from sending until it grows no more. */
async function addedMb(send: () => void): Promise<number> {
  await target.expectUnharmed();
  const beforeMb = await target.server.rssMb();
  send();
  let peakMb = beforeMb;
  for (let quiet = 0; quiet < LOOKS; quiet++) {
    await pause(LOOK_EVERY_MS);
    const nowMb = await target.server.rssMb();
    if (nowMb > peakMb + 1) quiet = 0;
    peakMb = Math.max(peakMb, nowMb);
  }
  return peakMb - beforeMb;
}

const CALLERS = [
  ["without a credential", () => undefined],
  ["with a credential", () => target.tenant.apiKey],
] as const;

test.each(CALLERS)(
  "incomplete messages of one gRPC connection cost bounded memory, %s",
  async (_name, apiKey) => {
    const session = await openSession(target.server.grpcPort);
    const added = await addedMb(() => {
      const body = unfinished(MESSAGE_BYTES);
      for (let i = 0; i < MESSAGES; i++) {
        const stream = session.request(grpcHeaders("Complete", apiKey()), { endStream: false });
        stream.on("error", () => {});
        stream.resume();
        stream.write(body);
      }
    });
    expect(added).toBeLessThan(MAX_ADDED_MB);
  },
);

test.each(CALLERS)(
  "incomplete messages of many HTTP connections cost bounded memory, %s",
  async (_name, apiKey) => {
    const sockets = await Promise.all(
      Array.from({ length: MESSAGES }, () => openSocket(target.server.httpPort)),
    );
    onTestFinished(() => {
      for (const { socket } of sockets) socket.destroy();
    });
    const body = Buffer.alloc(MESSAGE_BYTES - 1);
    const key = apiKey();
    const head = [
      `POST ${pathOf("Complete")} HTTP/1.1`,
      "host: a",
      "content-type: application/proto",
      `content-length: ${body.byteLength + 1}`,
      ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
    ];
    const added = await addedMb(() => {
      for (const { send } of sockets) {
        void send(`${head.join("\r\n")}\r\n\r\n`);
        void send(body);
      }
    });
    expect(added).toBeLessThan(MAX_ADDED_MB);
  },
);

test("a message without inbound memory waits until it is read or, after a while, refused", async () => {
  const session = await openSession(target.server.grpcPort);
  const headers = grpcHeaders("Batch", target.tenant.apiKey);
  const begun = [1, 2].map(() => {
    const stream = session.request(headers, { endStream: false });
    stream.on("error", () => {});
    stream.resume();
    stream.write(unfinished(3.9 * MIB));
    return stream;
  });
  const large = framed(BatchRequestSchema, {
    items: [{ request: { case: "lookup", value: { namespace: "x".repeat(2 * MIB), key: "k" } } }],
  });
  const refused = await callRaw(session, headers, large);
  expect(refused).toMatchObject({ code: "Unavailable", reason: "OVERLOADED" });
  const waiting = callRaw(session, headers, large);
  begun[0]?.close(http2.constants.NGHTTP2_CANCEL);
  expect(await waiting).toMatchObject({ code: "OK" });
});

test("one address has as many connections as configured, and may open another one when one ends", async () => {
  const opened = MAX_CONNECTIONS + MORE_CONNECTIONS;
  const sockets = await Promise.all(Array.from({ length: opened }, () => openSocket(target.server.grpcPort)));
  const open = () => sockets.filter(({ socket }) => !socket.closed).length;
  // Refused connections are closed at once. Connections of earlier tests may still be counted.
  await expect.poll(open).toBeLessThanOrEqual(MAX_CONNECTIONS);
  expect(open()).toBeGreaterThan(MAX_CONNECTIONS - MORE_CONNECTIONS);
  for (const { socket } of sockets) socket.destroy();
  await expect
    .poll(
      async () => {
        const session = await connectHttp2(target.server.grpcPort).catch(() => undefined);
        const answer =
          session &&
          (await callRaw(
            session,
            grpcHeaders("Batch", target.tenant.apiKey),
            framed(BatchRequestSchema, {}),
          ));
        session?.destroy();
        return answer?.code;
      },
      { timeout: 30_000 },
    )
    .toBe("InvalidArgument");
});
