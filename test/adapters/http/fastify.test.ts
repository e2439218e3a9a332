import { Readable } from "node:stream";
import Fastify, { type FastifyInstance } from "fastify";
import { expect, test, vi } from "vitest";
import { idempotency } from "../../../clients/typescript/src/fastify.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { Begin, StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";

const startWith =
  (createApp: typeof Fastify): StartApp =>
  async (onceward, options, effect) => {
    const app = createApp();
    const once = () =>
      idempotency(onceward, { ...options, caller: (request) => `${request.headers["x-account"] ?? ""}` });
    await app.register(once());
    await app.register((inner, _, done) => {
      inner.register(once());
      inner.post("/twice", async (request, reply) => {
        const { status, body } = await effect(request.claim);
        return reply.code(status).send(body);
      });
      done();
    });
    for (const url of ["/charges/:id", "/refunds/:id"]) {
      app.all(url, async (request, reply) => {
        const { status, headers = {}, cookies = [], body } = await effect(request.claim);
        reply.code(status).headers(headers);
        for (const cookie of cookies) reply.header("set-cookie", cookie);
        return reply.send(body === undefined ? undefined : Buffer.from(body));
      });
    }
    addReplies(app, async () => {
      await effect(undefined);
    });
    // Like the package @fastify/multipart: the handler reads the parts.
    app.addContentTypeParser("multipart/form-data", (_request, _payload, done) => done(null));
    app.addContentTypeParser("application/octet-stream", (_request, payload, done) => done(null, payload));
    await app.listen({ host: "127.0.0.1", port: 0 });
    return { ...(await listen(app.server)), close: () => app.close() };
  };

/** Adds handlers that answer in ways that only Fastify allows. */
function addReplies(app: FastifyInstance, effect: () => Promise<void>): void {
  app.post("/object", async () => {
    await effect();
    return { charge: "ch_1" };
  });
  app.post("/response", async () => {
    await effect();
    return new Response("charged", { status: 201, headers: { location: "/charges/1" } });
  });
  app.post("/breaks", async (_, reply) => {
    await effect();
    return reply.send(Readable.from(brokenOff()));
  });
}

async function* brokenOff() {
  yield "half of";
  throw new Error("the other half is missing");
}

function onlyFastify(begin: Begin): void {
  test("an answer that is a Response is replayed byte for byte", async () => {
    const effect = vi.fn(() => ({ status: 200 }));
    const world = await begin(effect);
    for (const _ of [1, 2]) {
      const { status, headers, body } = await world.send({ path: "/response" });
      expect([status, headers.location, headers["content-type"], body.toString()]).toEqual([
        201,
        "/charges/1",
        "text/plain;charset=UTF-8",
        "charged",
      ]);
    }
    expect(effect).toHaveBeenCalledOnce();
  });

  test("a response that breaks off leaves the claim to the policy", async () => {
    const effect = vi.fn(() => ({ status: 200 }));
    const world = await begin(effect);
    for (const _ of [1, 2]) expect((await world.send({ path: "/breaks" })).status).toBe(409);
    expect(effect).toHaveBeenCalledOnce();
  });

  test.each(["multipart/form-data; boundary=b", "application/octet-stream"])(
    "a body of %s read only by the handler is an error without a fingerprint; nothing runs",
    async (contentType) => {
      const effect = vi.fn(() => ({ status: 200 }));
      const world = await begin(effect);
      const request = { path: "/object", headers: { "content-type": contentType } };
      expect((await world.send(request)).status).toBe(500);
      expect(effect).not.toHaveBeenCalled();
      const withOne = await begin(effect, { options: { fingerprint: () => "f-1" } });
      expect((await withOne.send(request)).status).toBe(200);
    },
  );
}

describeHttpAdapter("Fastify", startWith(Fastify), { routes: true }, onlyFastify);
