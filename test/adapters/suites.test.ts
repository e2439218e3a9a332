import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { idempotency as expressIdempotency } from "@onceward/client/express";
import { idempotency as fastifyIdempotency } from "@onceward/client/fastify";
import { idempotency as honoIdempotency } from "@onceward/client/hono";
import { idempotent } from "@onceward/client/http";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { isSettled } from "../../clients/typescript/src/consumers/delivery.ts";
import { createHandler } from "../../clients/typescript/src/consumers/handle.ts";
import {
  describeConsumerAdapter,
  type SuiteConsumerFactory,
  type SuiteMessage,
} from "../helpers/adapters/consumer-suite.ts";
import { describeHttpAdapter, type SuiteServerFactory } from "../helpers/adapters/http-suite.ts";

/** The facts that a suite defines. */
type Facts = Map<string, () => Promise<void>>;

function factsOf(suite: (test: (name: string, fn: () => Promise<void>) => unknown) => void): Facts {
  const facts: Facts = new Map();
  suite((name, fn) => facts.set(name, fn));
  return facts;
}

/** Returns the names of the facts that don't hold. */
async function brokenOf(facts: Facts): Promise<string[]> {
  const broken: string[] = [];
  for (const [name, fn] of facts) await fn().catch(() => broken.push(name));
  return broken;
}

const newConsumer: SuiteConsumerFactory = (onceward, options, fn) => {
  const keyOf = ({ key }: SuiteMessage) => key;
  const quiet = { ...options, onDelivery: () => {} };
  const handle = createHandler(onceward, quiet, keyOf, ({ body }, claim) => fn(body, claim));
  return { deliver: async (message) => (isSettled(await handle(message)) ? "settled" : "kept") };
};

const callerOf = (headers: Headers) => headers.get("x-caller") ?? "";

const fetchServer: SuiteServerFactory = (onceward, options, handler) => ({
  fetch: idempotent(onceward, { ...options, caller: ({ headers }) => callerOf(headers) }, async () => {
    const { status, headers, body } = await handler();
    return new Response(body, { status, headers });
  }),
});

const honoServer: SuiteServerFactory = (onceward, options, handler) => {
  const app = new Hono();
  const guard = honoIdempotency(onceward, { ...options, caller: (c) => c.req.header("x-caller") ?? "" });
  app.post("/charges", guard, async () => {
    const { status, headers, body } = await handler();
    return new Response(body, { status, headers });
  });
  return { fetch: async (request) => await app.fetch(request) };
};

const expressServer: SuiteServerFactory = async (onceward, options, handler) => {
  const app = express();
  app.use(express.json());
  const guard = expressIdempotency(onceward, {
    ...options,
    caller: (request) => request.get("x-caller") ?? "",
  });
  app.post("/charges", guard, async (_request, response) => {
    const { status, headers, body } = await handler();
    response.status(status).set(headers).send(body);
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    fetch: async (request) =>
      await fetch(`http://127.0.0.1:${port}/charges`, {
        method: "POST",
        headers: request.headers,
        body: await request.text(),
      }),
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

const fastifyServer: SuiteServerFactory = async (onceward, options, handler) => {
  const app = Fastify();
  await app.register(
    fastifyIdempotency(onceward, {
      ...options,
      caller: ({ headers }) => String(headers["x-caller"] ?? ""),
    }),
  );
  app.post("/charges", async (_request, reply) => {
    const { status, headers, body } = await handler();
    return await reply.code(status).headers(headers).send(body);
  });
  const address = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    fetch: async (request) =>
      await fetch(`${address}/charges`, {
        method: "POST",
        headers: request.headers,
        body: await request.text(),
      }),
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
    },
  };
};

describe("a consumer of the core", () => describeConsumerAdapter(test, newConsumer));
describe("a fetch handler", () => describeHttpAdapter(test, fetchServer));
describe("Hono", () => describeHttpAdapter(test, honoServer));
describe("Express", () => describeHttpAdapter(test, expressServer));
describe("Fastify", () => describeHttpAdapter(test, fastifyServer));

test("the suite finds a consumer that guards nothing, and one that settles every message", async () => {
  const unguarded: SuiteConsumerFactory = (_onceward, _options, fn) => ({
    deliver: async ({ body }) => {
      try {
        await fn(body, undefined as never);
        return "settled";
      } catch {
        return "kept";
      }
    },
  });
  const facts = (make: SuiteConsumerFactory) => factsOf((fact) => describeConsumerAdapter(fact, make));
  // A message whose function throws once is handled rightly by chance.
  expect(await brokenOf(facts(unguarded))).toHaveLength(facts(unguarded).size - 1);
  const settling: SuiteConsumerFactory = async (...options) => {
    const consumer = await newConsumer(...options);
    return { deliver: (message) => consumer.deliver(message).then(() => "settled") };
  };
  expect((await brokenOf(facts(settling))).length).toBeGreaterThan(1);
});

test("the suite finds a server that guards nothing", async () => {
  const unguarded: SuiteServerFactory = (_onceward, _options, handler) => ({
    fetch: async () => {
      const { status, headers, body } = await handler();
      return new Response(body, { status, headers });
    },
  });
  const facts = factsOf((fact) => describeHttpAdapter(fact, unguarded));
  // Without a guard the second request of "in progress" would never be answered.
  facts.delete("while a request is handled, another one with its key gets 409 with Retry-After");
  const broken = await brokenOf(facts);
  expect([...facts.keys()].filter((name) => !broken.includes(name))).toEqual([
    "a response of 500 is not stored: the next attempt runs",
    "two callers with one key are two operations",
  ]);
});
