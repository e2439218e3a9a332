import { createServer, type Server } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type CallHandler, HttpException, type NestInterceptor, Post, UseInterceptors } from "@nestjs/common";
import express, { type ErrorRequestHandler, type Express, type RequestHandler, Router } from "express";
import Fastify, { type FastifyInstance } from "fastify";
import { catchError } from "rxjs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { idempotency, noteUnknownOutcome } from "../../../clients/typescript/src/express.ts";
import * as fastify from "../../../clients/typescript/src/fastify.ts";
import { type Onceward, OutcomeUnknownError } from "../../../clients/typescript/src/index.ts";
import { Idempotent } from "../../../clients/typescript/src/nestjs.ts";
import { newTesting } from "../../support/calls/testing.ts";
import { problemOf, send } from "./http-client.ts";
import { listen } from "./listen.ts";
import { createNestApp } from "./nest-routes.ts";

/** Ways in which an OutcomeUnknownError leaves a handler that only one framework has. */

const OPTIONS = { namespace: "charges", caller: () => "a-1" };
const LEASE_MS = 30_000;

const charge = vi.fn((): unknown => {
  throw new OutcomeUnknownError("the bank timed out");
});

async function* chargeInParts() {
  yield "half of";
  yield charge();
}

/** Sends three requests with one key, the last after the lease; returns their problems. */
async function repeat(port: number, expire: () => void): Promise<string[]> {
  const problems: string[] = [];
  const headers = { "idempotency-key": "order-1" };
  for (const before of [() => {}, () => {}, expire]) {
    before();
    const answer = await send(port, { path: "/charges", headers });
    expect(answer.headers).not.toHaveProperty("x-error");
    const { status, type } = problemOf(answer);
    problems.push(`${status} ${type.replace("urn:onceward:problem:", "")}`);
  }
  return problems;
}

const LEFT_TO_THE_POLICY = ["409 ambiguous", "409 in-progress", "409 ambiguous"];

function newOnceward() {
  charge.mockClear();
  const { onceward, clock } = newTesting({ policy: { onLeaseExpiry: "HOLD" } });
  return { onceward, expire: () => clock.advance(LEASE_MS) };
}

async function startExpress(
  onceward: Onceward,
  define: (app: Express, once: RequestHandler) => void,
  answerError: ErrorRequestHandler | "Express" = (_error, _req, res, _next) => {
    res.status(500).json({ error: "internal" });
  },
): Promise<number> {
  const app = express().set("env", "test").use(express.json());
  define(app, idempotency(onceward, OPTIONS));
  if (answerError !== "Express") app.use(answerError);
  const listening = await listen(createServer(app));
  onTestFinished(() => listening.close());
  return listening.port;
}

const chargeOnExpress: RequestHandler = (_req, res) => void res.json(charge());

describe("Express", () => {
  const answerRoute: ErrorRequestHandler = (_error, _req, res, _next) => void res.status(502).end();

  test.each<[what: string, define: (app: Express, once: RequestHandler) => void]>([
    [
      "a router that the guard is mounted on",
      (app, once) => app.use(once, Router().use("/", Router().post("/charges", chargeOnExpress))),
    ],
    ["a route of all methods", (app, once) => app.all("/charges", once, chargeOnExpress)],
    [
      "a handler without a route",
      (app, once) => app.use("/charges", once, chargeOnExpress, noteUnknownOutcome),
    ],
    [
      "a route with an error handler",
      (app, once) => app.post("/charges", once, chargeOnExpress, noteUnknownOutcome, answerRoute),
    ],
    [
      "a handler that passes the error on",
      (app, once) =>
        app.post("/charges", once, (_req, _res, next) => {
          try {
            charge();
          } catch (error) {
            next(error);
          }
        }),
    ],
    [
      "a pipeline that breaks off",
      (app, once) =>
        app.post("/charges", once, (_req, res, next) => {
          // Express 4 does not wait for promises.
          pipeline(Readable.from(chargeInParts()), res).catch(next);
        }),
    ],
  ])("an OutcomeUnknownError of %s leaves the claim to the policy", async (_, define) => {
    const { onceward, expire } = newOnceward();
    expect(await repeat(await startExpress(onceward, define), expire)).toEqual(LEFT_TO_THE_POLICY);
    expect(charge).toHaveBeenCalledOnce();
  });

  test("an OutcomeUnknownError after the response has begun leaves the claim to the policy", async () => {
    const { onceward, expire } = newOnceward();
    const port = await startExpress(
      onceward,
      (app, once) =>
        app.post("/charges", once, (_req, res) => {
          res.type("text/html").set("x-half", "yes").write("half of");
          charge();
        }),
      // It ends the connection.
      "Express",
    );
    expect(await repeat(port, expire)).toEqual(LEFT_TO_THE_POLICY);
    expect(charge).toHaveBeenCalledOnce();
  });

  test("the client gets the headers of earlier middleware, and none of the error's answer", async () => {
    const { onceward } = newOnceward();
    const port = await startExpress(
      onceward,
      (app, once) => {
        app.use((_req, res, next) => {
          res.set({ "x-before": "yes", "x-changed": "before" });
          next();
        });
        app.post("/charges", once, chargeOnExpress);
      },
      (_error, _req, res, _next) => {
        res.status(500).set({ "x-changed": "after", "x-error": "yes" }).type("text/html").end("failed");
      },
    );
    const { headers } = await send(port, { path: "/charges", headers: { "idempotency-key": "order-1" } });
    expect(headers).toMatchObject({ "x-before": "yes", "x-changed": "before" });
    expect(headers).toMatchObject({ "content-type": "application/problem+json" });
    expect(headers).not.toHaveProperty("x-error");
  });

  test("a guarded route answers no other methods than before, and HEAD", async () => {
    const { onceward } = newOnceward();
    const port = await startExpress(onceward, (app) => {
      const once = idempotency(onceward, { ...OPTIONS, methods: ["POST", "HEAD"], required: false });
      app.post("/charges", once, (_req, res) => void res.end("charged"));
      app.get("/balance", once, (_req, res) => void res.set("x-balance", "1").end());
    });
    const headers = { "idempotency-key": "order-1" };
    expect((await send(port, { path: "/charges", headers })).status).toBe(200);
    for (const method of ["GET", "PUT"])
      expect((await send(port, { method, path: "/charges" })).status).toBe(404);
    expect((await send(port, { method: "OPTIONS", path: "/charges", body: "" })).headers).toMatchObject({
      allow: "POST",
    });
    for (const key of ["order-2", "order-3"]) {
      const balance = await send(port, {
        method: "HEAD",
        path: "/balance",
        headers: { "idempotency-key": key },
        body: "",
      });
      expect(balance.headers).toMatchObject({ "x-balance": "1" });
    }
  });
});

describe("Fastify", () => {
  test.each<[what: string, define: (app: FastifyInstance) => unknown]>([
    [
      "of a handler whose error handler answers itself",
      (app) =>
        app
          .setErrorHandler(
            (_error, _request, reply) => void reply.code(500).header("x-error", "yes").send({}),
          )
          .post("/charges", async () => charge()),
    ],
    ["of a route that was declared before the guard", (app) => app],
    [
      "that a handler sends",
      (app) =>
        app.post("/charges", (_, reply) => {
          try {
            charge();
          } catch (error) {
            void reply.send(error);
          }
        }),
    ],
    [
      "of a stream",
      (app) =>
        app.post("/charges", (_, reply) =>
          reply.type("text/plain").header("content-length", "3").send(Readable.from(chargeInParts())),
        ),
    ],
    [
      "of a hijacked reply",
      (app) =>
        app.post("/charges", async (_, reply) => {
          reply.hijack();
          reply.raw.write("half of");
          try {
            charge();
          } catch (error) {
            reply.raw.destroy(error as Error);
          }
        }),
    ],
  ])("an OutcomeUnknownError %s leaves the claim to the policy", async (what, define) => {
    const { onceward, expire } = newOnceward();
    const app = Fastify();
    if (what.includes("before")) app.post("/charges", async () => charge());
    app.register(fastify.idempotency(onceward, OPTIONS));
    define(app);
    await app.listen({ host: "127.0.0.1", port: 0 });
    onTestFinished(() => app.close());
    const { port } = await listen(app.server);
    expect(await repeat(port, expire)).toEqual(LEFT_TO_THE_POLICY);
    expect(charge).toHaveBeenCalledOnce();
  });
});

class Wraps implements NestInterceptor {
  intercept(_: unknown, next: CallHandler) {
    return next.handle().pipe(
      catchError((cause) => {
        throw new HttpException("card declined", 402, { cause });
      }),
    );
  }
}

describe.each(["Express", "Fastify"] as const)("NestJS on %s", (platform) => {
  test("an OutcomeUnknownError that an interceptor wraps leaves the claim to the policy", async () => {
    const { onceward, expire } = newOnceward();
    // Nest runs the interceptors of the decorator that is written last first.
    const decorators = [Post("charges"), UseInterceptors(Wraps), Idempotent({ namespace: "charges" })];
    const app = await createNestApp(platform, onceward, { charge: { decorators, handle: charge } });
    await app.listen(0, "127.0.0.1");
    onTestFinished(() => app.close());
    const { port } = await listen(app.getHttpServer() as Server);
    expect(await repeat(port, expire)).toEqual(LEFT_TO_THE_POLICY);
    expect(charge).toHaveBeenCalledOnce();
  });
});
