import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import Fastify from "fastify";
import { expect, onTestFinished, test, vi } from "vitest";
import { idempotency } from "../../../clients/typescript/src/fastify.ts";
import { createTestingOnceward } from "../../../clients/typescript/src/testing.ts";

const OPTIONS = { namespace: "charges", caller: () => "a-1", waitMs: 10_000 };

test("a stream over HTTP/2 whose client disconnects is written to its end and replayed", async () => {
  await using testing = createTestingOnceward();
  const begun = Promise.withResolvers<void>();
  const resumed = Promise.withResolvers<void>();
  const effect = vi.fn();
  const app = Fastify({ http2: true });
  await app.register(idempotency(testing.onceward, OPTIONS));
  app.post("/charges", async (_, reply) => {
    effect();
    reply.hijack();
    begun.resolve();
    await resumed.promise;
    await pipeline(Readable.from(["char", "ged"]), reply.raw as unknown as NodeJS.WritableStream);
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());

  const left = post(session);
  await begun.promise;
  left.close();
  await once(left, "close");
  const repeat = post(session);
  const responded = once(repeat, "response");
  // Both streams use one connection, so the server has already seen the end of the first one.
  await vi.waitFor(() => expect(testing.waiting).toBe(1), 30_000);
  resumed.resolve();
  const [headers] = await responded;
  expect(headers).toMatchObject({ ":status": 200, "idempotency-replayed": "true" });
  expect(await text(repeat)).toBe("charged");
  expect(effect).toHaveBeenCalledOnce();
  session.destroy();
  await app.close();
});

function post(session: ClientHttp2Session) {
  const request = session.request({
    ":method": "POST",
    ":path": "/charges",
    "content-type": "application/json",
    "idempotency-key": "order-1",
  });
  request.end("{}");
  return request;
}
