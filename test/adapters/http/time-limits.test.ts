import { createServer, type Server } from "node:http";
import { createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { createAdaptorServer } from "@hono/node-server";
import {
  type CallHandler,
  type NestInterceptor,
  Post,
  RequestTimeoutException,
  UseInterceptors,
} from "@nestjs/common";
import express, { type RequestHandler } from "express";
import Fastify, { type preHandlerHookHandler, type RouteShorthandOptions } from "fastify";
import { Hono } from "hono";
import { timeout as honoTimeout } from "hono/timeout";
import { catchError, TimeoutError, throwError, timeout } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import * as connect from "../../../clients/typescript/src/connect.ts";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import * as fastify from "../../../clients/typescript/src/fastify.ts";
import { Record_State } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import * as hono from "../../../clients/typescript/src/hono.ts";
import { joinKey, type Onceward } from "../../../clients/typescript/src/index.ts";
import { Idempotent } from "../../../clients/typescript/src/nestjs.ts";
import { createTestingOnceward } from "../../../clients/typescript/src/testing.ts";
import { Charges } from "../rpc/test-service.ts";
import { listen } from "./listen.ts";
import { createNestApp, type Platform } from "./nest-routes.ts";

/** A time limit within a guard answers for a handler that still runs, and may have its effect afterwards. */

const OPTIONS = { namespace: "charges", caller: () => "a-1" };
const LIMIT_MS = 20;
/** Fastify's handlerTimeout never fires for a request whose body has been read, so that this one has neither a body nor a type. */
const REQUEST = { method: "POST", headers: { "idempotency-key": "order-1" } };
const LEASE_MS = 30_000;

type Charge = () => Promise<{ id: string }>;
/** Starts a guarded handler within a time limit. Returns its port. */
type Start = (onceward: Onceward, charge: Charge) => Promise<number>;

async function portOf(server: Server, close?: () => unknown): Promise<number> {
  const listening = await listen(server);
  onTestFinished(async () => void (await (close === undefined ? listening.close() : close())));
  return listening.port;
}

const limitOfExpress: RequestHandler = (_req, res, next) => {
  const timer = setTimeout(() => void res.status(503).json({ error: "timeout" }), LIMIT_MS);
  res.once("finish", () => clearTimeout(timer));
  next();
};

const startExpress: Start = (onceward, charge) => {
  const app = express().set("env", "test").use(express.json());
  app.post("/charges", idempotency(onceward, OPTIONS), limitOfExpress, async (_req, res) => {
    const charged = await charge();
    if (!res.headersSent) res.json(charged);
  });
  return portOf(createServer(app));
};

const limitOfFastify: preHandlerHookHandler = (_request, reply, done) => {
  setTimeout(() => void (reply.sent || reply.code(503).send({ error: "timeout" })), LIMIT_MS);
  done();
};

const startFastify =
  (limit: RouteShorthandOptions, more: object = {}): Start =>
  async (onceward, charge) => {
    const app = Fastify();
    await app.register(fastify.idempotency(onceward, { ...OPTIONS, ...more }));
    app.post("/charges", limit, charge);
    await app.listen({ host: "127.0.0.1", port: 0 });
    return await portOf(app.server, () => app.close());
  };

const startHono: Start = (onceward, charge) => {
  const app = new Hono();
  app.post("/charges", hono.idempotency(onceward, OPTIONS), honoTimeout(LIMIT_MS), async (c) =>
    c.json(await charge()),
  );
  return portOf(createAdaptorServer({ fetch: app.fetch }) as Server);
};

/** As Nest's documentation writes it. */
class TimeoutInterceptor implements NestInterceptor {
  intercept(_: unknown, next: CallHandler) {
    return next.handle().pipe(
      timeout(LIMIT_MS),
      catchError((error) =>
        throwError(() => (error instanceof TimeoutError ? new RequestTimeoutException() : error)),
      ),
    );
  }
}

const startNest =
  (platform: Platform): Start =>
  async (onceward, charge) => {
    const once = Idempotent({ namespace: "charges" });
    const decorators = [UseInterceptors(TimeoutInterceptor), once, Post("charges")];
    const app = await createNestApp(platform, onceward, { charge: { decorators, handle: charge } });
    await app.listen(0, "127.0.0.1");
    return await portOf(app.getHttpServer() as Server, () => app.close());
  };

test.each<[framework: string, start: Start, status: number]>([
  ["Express", startExpress, 503],
  ["Fastify", startFastify({ preHandler: limitOfFastify }), 503],
  // Time for the claim, which it includes.
  ["Fastify's handlerTimeout", startFastify({ handlerTimeout: 1000 }), 503],
  ["Hono", startHono, 504],
  ["NestJS on Express", startNest("Express"), 408],
  ["NestJS on Fastify", startNest("Fastify"), 408],
])("a time limit of %s answers, and the effect does not happen twice", async (_, start, status) => {
  await using testing = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const charged = Promise.withResolvers<{ id: string }>();
  const charge = vi.fn(() => charged.promise);
  const port = await start(testing.onceward, charge);
  const attempt = async () => (await fetch(`http://127.0.0.1:${port}/charges`, REQUEST)).status;
  expect([await attempt(), await attempt()]).toEqual([status, 409]);
  charged.resolve({ id: "ch_1" });
  testing.clock.advance(LEASE_MS);
  expect(await attempt()).toBe(409);
  expect(charge).toHaveBeenCalledOnce();
});

test("a request that Fastify's handlerTimeout ends while its claim waits releases the claim", async () => {
  await using testing = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const { onceward } = testing;
  const charge = vi.fn(async () => ({ id: "ch_1" }));
  const port = await startFastify({ handlerTimeout: 100 }, { waitMs: 30_000 })(onceward, charge);
  const attempt = async () => (await fetch(`http://127.0.0.1:${port}/charges`, REQUEST)).status;
  const released = Promise.withResolvers<never>();
  const operation = { namespace: "charges", key: joinKey("POST", "/charges", "a-1", "order-1") };
  const holder = expect(onceward.run(operation, () => released.promise)).rejects.toThrow("declined");
  await vi.waitUntil(() => testing.records().length === 1);
  expect(await attempt()).toBe(503);
  released.reject(new Error("declined"));
  await holder;
  await vi.waitUntil(() => testing.records()[0]?.attempt === 2);
  await vi.waitUntil(() => testing.records()[0]?.state === Record_State.RELEASED);
  expect(charge).not.toHaveBeenCalled();
  expect(await attempt()).toBe(200);
});

test("a deadline of Connect that ends a handler leaves its claim to the policy", async () => {
  await using testing = createTestingOnceward({ policy: { onLeaseExpiry: "HOLD" } });
  const charge = vi.fn(async (_: unknown, { signal }: { readonly signal: AbortSignal }) => {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw signal.reason;
  });
  const adapter = connectNodeAdapter({
    routes: (router) =>
      router.service(Charges, {
        create: connect.idempotentUnary(testing.onceward, Charges.method.create, OPTIONS, charge),
      }),
  });
  const baseUrl = `http://127.0.0.1:${await portOf(createServer(adapter))}`;
  const client = createClient(Charges, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
  const headers = { "idempotency-key": '"order-1"' };
  await expect(client.create({}, { headers, timeoutMs: 200 })).rejects.toMatchObject({
    rawMessage: /timed out/,
  });
  await expect(client.create({}, { headers })).rejects.toMatchObject({ rawMessage: /in progress/ });
  testing.clock.advance(LEASE_MS);
  await expect(client.create({}, { headers })).rejects.toMatchObject({ rawMessage: /not known/ });
  expect(charge).toHaveBeenCalledOnce();
});
