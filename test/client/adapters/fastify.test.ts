import { Readable } from "node:stream";
import Fastify, { type FastifyInstance } from "fastify";
import { expect, test, vi } from "vitest";
import { idempotency } from "../../../clients/typescript/src/fastify.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { StartApp, Worlds } from "./http-world.ts";
import { listen } from "./listen.ts";

const startApp: StartApp = async (onceward, options, effect) => {
  const app = Fastify();
  await app.register(
    idempotency(onceward, { ...options, caller: (request) => `${request.headers["x-account"] ?? ""}` }),
  );
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
  await app.listen({ host: "127.0.0.1", port: 0 });
  return { ...(await listen(app.server)), close: () => app.close() };
};

/** Handlers that answer as only Fastify lets them. */
function addReplies(app: FastifyInstance, effect: () => Promise<void>): void {
  app.post("/object", async () => {
    await effect();
    return { charge: "ch_1" };
  });
  app.post("/stream", async (_, reply) => {
    await effect();
    return reply.type("text/plain").send(Readable.from(["one", "two"]));
  });
  app.post("/response", async () => {
    await effect();
    return new Response("charged", { status: 201, headers: { location: "/charges/1" } });
  });
  app.post("/breaks", async (_, reply) => {
    await effect();
    return reply.send(Readable.from(brokenOff()));
  });
  app.post("/hijacked", async (_, reply) => {
    await effect();
    reply.hijack();
    reply.raw.end("by hand");
  });
}

async function* brokenOff() {
  yield "half of";
  throw new Error("the other half is missing");
}

function onlyFastify(begin: Worlds["begin"]): void {
  test.each([
    ["object", 200, '{"charge":"ch_1"}', "application/json; charset=utf-8"],
    ["stream", 200, "onetwo", "text/plain"],
    ["response", 201, "charged", "text/plain;charset=UTF-8"],
  ])("an answer that is an %s is replayed byte for byte", async (kind, status, body, contentType) => {
    const effect = vi.fn(() => ({ status: 200 }));
    const world = await begin(effect);
    for (const _ of [1, 2]) {
      const answer = await world.send({ path: `/${kind}` });
      expect(answer).toMatchObject({ status, body: Buffer.from(body) });
      expect(answer.headers["content-type"]).toBe(contentType);
    }
    expect(effect).toHaveBeenCalledOnce();
  });

  test.each(["breaks", "hijacked"])("an answer that %s releases the claim", async (kind) => {
    const effect = vi.fn(() => ({ status: 200 }));
    const world = await begin(effect, { options: { waitMs: 10_000 } });
    await world.send({ path: `/${kind}` });
    await world.send({ path: `/${kind}` });
    expect(effect).toHaveBeenCalledTimes(2);
  });
}

describeHttpAdapter("fastify", startApp, { parses: true, routes: true }, onlyFastify);
