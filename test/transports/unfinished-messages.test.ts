import http2 from "node:http2";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { BatchRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { startTarget, type Target } from "../helpers/attacks/hostility.ts";
import { callRaw, connectHttp2, framed, grpcHeaders, pathOf } from "../helpers/network/raw-grpc.ts";
import { openSocket } from "../helpers/network/raw-socket.ts";

const MIB = 1024 * 1024;
/** What the server adds at most for messages that don't end, with what its allocator keeps back. */
const MAX_ADDED_MB = 64;
const MESSAGES = 60;

let target: Target;

beforeAll(async () => {
  target = await startTarget(undefined, {
    ONCEWARD_REQUEST_TIMEOUT: "20s",
    ONCEWARD_CONNECTIONS_PER_ADDRESS: "100",
  });
});

afterAll(() => target?.end());

afterEach(() => target.expectUnharmed());

/** All but the last byte of a message that says it has so many. */
function unfinished(bytes: number): Buffer {
  const body = Buffer.alloc(4 + bytes);
  body.writeUInt32BE(bytes, 1);
  return body;
}

/** Looks at the server's memory until it has not grown for so many looks. */
const LOOKS = 10;
const LOOK_EVERY_MS = 60;

/** How much memory the server has more at most, from what is sent until it grows no more. */
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
  ["with one", () => target.tenant.apiKey],
] as const;

test.each(CALLERS)(
  "messages of one gRPC connection that don't end cost bounded memory, %s",
  async (_name, apiKey) => {
    const session = await connectHttp2(target.server.grpcPort);
    onTestFinished(() => session.destroy());
    const added = await addedMb(() => {
      for (let i = 0; i < MESSAGES; i++) {
        const stream = session.request(grpcHeaders("Batch", apiKey()), { endStream: false });
        stream.on("error", () => {});
        stream.resume();
        stream.write(unfinished(3.9 * MIB));
      }
    });
    expect(added).toBeLessThan(MAX_ADDED_MB);
  },
);

test.each(CALLERS)(
  "messages of many HTTP connections that don't end cost bounded memory, %s",
  async (_name, apiKey) => {
    const sockets = await Promise.all(
      Array.from({ length: MESSAGES }, () => openSocket(target.server.httpPort)),
    );
    onTestFinished(() => {
      for (const { socket } of sockets) socket.destroy();
    });
    const body = Buffer.alloc(3.9 * MIB - 1);
    const key = apiKey();
    const head = [
      `POST ${pathOf("Batch")} HTTP/1.1`,
      "host: a",
      "content-type: application/proto",
      `content-length: ${body.byteLength + 1}`,
      ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
    ];
    const added = await addedMb(() => {
      for (const { send } of sockets)
        void send(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]));
    });
    expect(added).toBeLessThan(MAX_ADDED_MB);
  },
);

test("a message that finds no room waits, and is refused after a while or read once there is room", async () => {
  const session = await connectHttp2(target.server.grpcPort);
  onTestFinished(() => session.destroy());
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

test("one address has as many connections as are configured, and a connection that ends makes room", async () => {
  const sockets = await Promise.all(Array.from({ length: 100 }, () => openSocket(target.server.grpcPort)));
  const another = await openSocket(target.server.grpcPort);
  await another.closed;
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
