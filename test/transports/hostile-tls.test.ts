import { type ConnectionOptions, TLSSocket } from "node:tls";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { ClaimRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { floodUntilClosed, startTarget } from "../support/attacks/hostility.ts";
import { ORDER } from "../support/calls/verbs.ts";
import { makeCertificate } from "../support/network/certificates.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openHttp2,
} from "../support/network/http2-frames.ts";
import { framed, pathOf } from "../support/network/raw-grpc.ts";
import { exchange, openSocket } from "../support/network/raw-socket.ts";
import { useStarted } from "../support/use-started.ts";

/** Concurrent streams of a connection. */
const MAX_STREAMS = 2000;

const certificate = useStarted(makeCertificate, (made) => made.remove());
const target = useStarted(
  () => startTarget(certificate),
  (started) => started.end(),
);
const tls: ConnectionOptions = useStarted(() => ({ ca: certificate.pem.cert }));

afterEach(() => target.expectUnharmed());

const garbage = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 89 + 7) % 256));

/** The beginning of a handshake: a record that is shorter than its length. */
const halfHello = Buffer.from("16030100f8010000f40303", "hex");

function callHead(more: Readonly<Record<string, string>> = {}): Buffer {
  return headerBlock({
    ":method": "POST",
    ":scheme": "https",
    ":path": pathOf("Claim"),
    ":authority": "a",
    "content-type": "application/grpc",
    te: "trailers",
    ...more,
  });
}

describe("a handshake", () => {
  test.each(["grpcPort", "httpPort", "managementPort"] as const)(
    "of garbage on the %s ends that connection",
    async (port) => {
      expect(await exchange(target.server[port], garbage)).not.toContain("HTTP");
      expect(await exchange(target.server[port], "GET / HTTP/1.1\r\nhost: a\r\n\r\n")).not.toContain("HTTP");
    },
  );

  test.each(["grpcPort", "httpPort"] as const)(
    "that never begins or stops half-way on the %s is cut off",
    async (port) => {
      const [silent, halfWay] = await Promise.all([
        openSocket(target.server[port]),
        openSocket(target.server[port]),
      ]);
      await halfWay.send(halfHello);
      await Promise.all([silent.closed, halfWay.closed]);
    },
  );

  test("that never begins, on a thousand connections, keeps no other client out", async () => {
    const silent = await Promise.all(Array.from({ length: 1000 }, () => openSocket(target.server.grpcPort)));
    await target.expectUnharmed();
    await Promise.all(silent.map(({ closed }) => closed));
  });

  test.each(["grpcPort", "httpPort"] as const)(
    "that is renegotiated again and again harms no other call on the %s",
    async (port) => {
      // TLS 1.3 has no renegotiation.
      const old: ConnectionOptions = { ...tls, maxVersion: "TLSv1.2", ALPNProtocols: ["h2", "http/1.1"] };
      const { socket } = await openSocket(target.server[port], old);
      if (!(socket instanceof TLSSocket)) throw new TypeError("the connection is not encrypted");
      socket.setMaxListeners(0);
      for (let round = 0; round < 100; round++) {
        socket.renegotiate({}, () => {});
        await new Promise(setImmediate);
      }
      socket.destroy();
    },
  );

  test("that does not negotiate HTTP/2 ends the connection to the gRPC port", async () => {
    const { send, closed } = await openSocket(target.server.grpcPort, tls);
    await send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await closed;
  });

  test("that does not negotiate HTTP/2 does not keep the connection open by sending more", async () => {
    const { socket, closed } = await openSocket(target.server.grpcPort, {
      ...tls,
      allowHalfOpen: true,
    } as typeof tls);
    const trickle = setInterval(() => socket.write("a"), 100);
    onTestFinished(() => {
      clearInterval(trickle);
      socket.destroy();
    });
    await closed;
  });
});

describe("over TLS, on the gRPC port,", () => {
  test("many streams that are opened and reset immediately end the connection", async () => {
    const raw = await openHttp2(target.server.grpcPort, tls);
    const cancel = Buffer.from([0, 0, 0, 8]);
    await floodUntilClosed(raw, (round) =>
      Buffer.concat(
        Array.from({ length: 100 }, (_, i) => {
          const streamId = (round * 100 + i) * 2 + 1;
          return Buffer.concat([
            frame(FRAME.headers, END_HEADERS, streamId, callHead()),
            frame(FRAME.resetStream, 0, streamId, cancel),
          ]);
        }),
      ),
    );
  });

  test("many pings whose answers are not read end the connection", async () => {
    const raw = await openHttp2(target.server.grpcPort, tls);
    raw.socket.pause();
    const pings = Buffer.concat(Array.from({ length: 1000 }, () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))));
    await floodUntilClosed(raw, () => pings);
  });

  test("calls whose answers are not read cost bounded memory", async () => {
    const { send, socket } = await openHttp2(target.server.grpcPort, tls);
    socket.pause();
    const credential = { authorization: `Bearer ${target.tenant.apiKey}` };
    const calls = Array.from({ length: MAX_STREAMS }, (_, i) => [
      frame(FRAME.headers, END_HEADERS, i * 2 + 1, callHead(credential)),
      frame(FRAME.data, END_STREAM, i * 2 + 1, framed(ClaimRequestSchema, ORDER)),
    ]);
    void send(Buffer.concat(calls.flat()));
    await target.expectUnharmed();
    socket.destroy();
  });
});

describe("over TLS, on the HTTP port,", () => {
  test("a request that never begins, or whose headers or body never end, is cut off", async () => {
    const [headers, silent, body] = await Promise.all(
      [1, 2, 3].map(() => openSocket(target.server.httpPort, tls)),
    );
    await headers?.send(`POST ${pathOf("Claim")} HTTP/1.1\r\nhost: a\r\n`);
    const head = ["host: a", "content-type: application/json", "content-length: 100"].join("\r\n");
    await body?.send(`POST ${pathOf("Claim")} HTTP/1.1\r\n${head}\r\n\r\n`);
    await Promise.all([headers?.closed, silent?.closed, body?.closed]);
    expect(headers?.received()).toMatch(/^HTTP\/1\.1 408 /);
  });

  test("a caller that pipelines requests and reads no answer costs bounded memory", async () => {
    const { socket, send } = await openSocket(target.server.httpPort, tls);
    socket.pause();
    const request = `GET /nowhere-${"x".repeat(1000)} HTTP/1.1\r\nhost: a\r\n\r\n`;
    // The server reads no further while its answers are not read, so the rest is never sent.
    void send(request.repeat(20_000));
    await target.expectUnharmed();
    socket.destroy();
  });
});
