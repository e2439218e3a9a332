import { once } from "node:events";
import { pipeline, Readable } from "node:stream";
import { pipeline as pipelinePromise } from "node:stream/promises";
import type Fastify from "fastify";
import type { FastifyReply } from "fastify";
import { idempotency } from "../../../clients/typescript/src/fastify.ts";
import { listen } from "./listen.ts";
import type { Steps } from "./steps.ts";
import * as ways from "./ways-to-answer.ts";

interface FastifyWay extends ways.WayFacts {
  handle(reply: FastifyReply, steps: Steps): Promise<unknown>;
}

const WAYS: Record<string, FastifyWay> = {
  "an object": { ...ways.answers, handle: async () => ({ charge: "ch_1" }) },
  send: { ...ways.answers, handle: async (reply) => reply.code(201).send("charged") },
  nothing: {
    ...ways.answers,
    async handle(reply) {
      reply.code(204);
    },
  },
  "a stream": {
    ...ways.answersInParts,
    handle: async (reply, steps) => reply.type("text/plain").send(Readable.from(steps.body())),
  },
  "a Response": { ...ways.answers, handle: async () => new Response("charged", { status: 201 }) },
  "an error handler": {
    ...ways.answers,
    async handle() {
      throw Object.assign(new Error("card declined"), { statusCode: 402 });
    },
  },
  "a hijacked reply": {
    ...ways.answersInParts,
    async handle(reply, steps) {
      reply.hijack();
      reply.raw.writeHead(201, { "content-type": "text/plain" });
      for await (const part of steps.body()) reply.raw.write(part);
      reply.raw.end();
    },
  },
  "await pipeline to a hijacked reply": {
    ...ways.answersInParts,
    handle(reply, steps) {
      reply.hijack();
      return pipelinePromise(Readable.from(steps.body()), reply.raw);
    },
  },
  "pipeline with a callback to a hijacked reply": {
    ...ways.answersInParts,
    async handle(reply, steps) {
      reply.hijack();
      const source = Readable.from(steps.body());
      pipeline(source, reply.raw, () => {});
      await once(source, "close");
    },
  },
  "an error": {
    ...ways.fails,
    async handle() {
      throw new Error("the provider is down");
    },
  },
  "a stream that breaks": {
    ...ways.breaks,
    handle: async (reply, steps) => reply.send(Readable.from(ways.brokenBody(steps))),
  },
  "a hijacked reply that breaks": {
    ...ways.breaks,
    handle(reply, steps) {
      reply.hijack();
      return pipelinePromise(Readable.from(ways.brokenBody(steps)), reply.raw);
    },
  },
  "no answer": { ...ways.neverEnds, handle: ways.forever },
  "a hijacked reply without an end": {
    ...ways.neverEnds,
    async handle(reply) {
      reply.hijack();
      reply.raw.write("one ");
    },
  },
};

/** Returns the ways to answer in a version of Fastify. */
export function fastifyWays(createApp: typeof Fastify): ways.WaysToAnswer {
  return {
    ways: WAYS,
    async start(onceward, options, steps) {
      const app = createApp();
      await app.register(idempotency(onceward, { ...options, caller: () => "a-1" }));
      for (const [name, way] of Object.entries(WAYS)) {
        app.post(ways.pathOf(name), (request, reply) =>
          steps.run(request.claim, () => way.handle(reply, steps)),
        );
      }
      await app.listen({ host: "127.0.0.1", port: 0 });
      return {
        ...(await listen(app.server)),
        async close() {
          // Fastify waits for requests, and some never end.
          app.server.closeAllConnections();
          await app.close();
        },
      };
    },
  };
}
