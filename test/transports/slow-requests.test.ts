import { once } from "node:events";
import http2, { type ClientHttp2Stream } from "node:http2";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { useTarget } from "../support/attacks/hostility.ts";
import { ORDER } from "../support/calls/verbs.ts";
import { openSession } from "../support/network/open-session.ts";
import { callRaw, framed, grpcHeaders } from "../support/network/raw-grpc.ts";

/** Concurrent streams of a connection. */
const MAX_STREAMS = 2000;

const target = useTarget();

afterEach(() => target.expectUnharmed());

const connect = () => openSession(target.server.grpcPort);

/** Resolves with the code with which the server resets the stream. */
async function resetCode(stream: ClientHttp2Stream): Promise<number> {
  stream.on("error", () => {});
  stream.resume();
  await once(stream, "close").catch(() => {});
  return stream.rstCode;
}

const message = framed(ClaimRequestSchema, ORDER);

test("a stream whose message does not end in time is closed, and the connection stays open", async () => {
  const starts = {
    "never begins": Buffer.alloc(0),
    "stops within its length": message.subarray(0, 3),
    "stops half-way": message.subarray(0, 8),
    "is complete, but not ended": message,
  };
  // At once, because each waits for the request timeout.
  await Promise.all(
    Object.entries(starts).map(async ([name, start]) => {
      const session = await connect();
      const stream = session.request(grpcHeaders("Claim", target.tenant.apiKey));
      if (start.byteLength > 0) stream.write(start);
      expect(await resetCode(stream), name).toBe(http2.constants.NGHTTP2_CANCEL);
      const headers = grpcHeaders("Claim", target.tenant.apiKey);
      const another = framed(ClaimRequestSchema, { ...ORDER, key: name });
      expect(await callRaw(session, headers, another), name).toMatchObject({ code: "OK" });
    }),
  );
});

test("a stream whose message arrives byte by byte is closed in time", async () => {
  const session = await connect();
  const stream = session.request(grpcHeaders("Claim", target.tenant.apiKey));
  stream.write(Buffer.from([0, 0, 0, 255, 255]));
  const trickle = setInterval(() => stream.write("x"), 20);
  onTestFinished(() => clearInterval(trickle));
  expect(await resetCode(stream)).toBe(http2.constants.NGHTTP2_CANCEL);
});

test("a stream without an end is closed on every path", async () => {
  const session = await connect();
  const paths = [
    ...["/nowhere", "/grpc.health.v1.Health/Check"],
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  ];
  const streams = paths.map((path) => session.request(grpcHeaders("Claim", undefined, { ":path": path })));
  await Promise.all(streams.map(resetCode));
  expect(streams.map(({ closed }) => closed)).toEqual([true, true, true]);
});

test("all streams of a connection are closed if all are slow", async () => {
  const session = await connect();
  const streams = Array.from({ length: MAX_STREAMS }, () =>
    session.request(grpcHeaders("Claim", target.tenant.apiKey)),
  );
  await Promise.all(streams.map(resetCode));
  const answer = await callRaw(session, grpcHeaders("Claim", target.tenant.apiKey), message);
  expect(answer.code).toBe("OK");
});

test("a call that waits longer than the request timeout is not closed", async () => {
  const session = await connect();
  const key = { namespace: "charges", key: "waited-for" };
  const headers = grpcHeaders("Claim", target.tenant.apiKey);
  await callRaw(session, headers, framed(ClaimRequestSchema, key));
  const waiting = framed(ClaimRequestSchema, { ...key, wait: { seconds: 2n } });
  expect((await callRaw(session, headers, waiting)).code).toBe("OK");
});
