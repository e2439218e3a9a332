import { createServer } from "node:http";
import { Readable } from "node:stream";
import type { Onceward } from "@onceward/client";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { describe, expect, test, vi } from "vitest";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { CommonOptions, Reply, StartApp, Worlds } from "./http-world.ts";
import { listen } from "./listen.ts";

const startApp: StartApp = (onceward, options, effect) => {
  const app = express();
  // The default handler prints errors that it answers with 500 unless told that this is a test.
  app.set("env", "test");
  app.use("/unparsed", once(onceward, options), async (_req, res) =>
    answer(res, await effect(res.locals.claim)),
  );
  app.use(express.json(), express.text());
  for (const path of ["/charges/:id", "/refunds/:id"]) {
    app.all(path, once(onceward, options), (_req, res, next) => {
      // Express 4 doesn't look for a rejection by itself.
      const answered = (async () => answer(res, await effect(res.locals.claim)))();
      answered.catch(next);
    });
  }
  addStreams(app, once(onceward, options), async () => {
    await effect(undefined);
  });
  return listen(createServer(app));
};

function once(onceward: Onceward, options: CommonOptions) {
  return idempotency(onceward, { ...options, caller: (req) => req.get("x-account") ?? "" });
}

function answer(res: Response, { status, headers = {}, cookies = [], body }: Reply): void {
  res.status(status).set(headers);
  for (const cookie of cookies) res.append("set-cookie", cookie);
  res.end(body);
}

/** Handlers that write as only node:http lets them. */
function addStreams(app: Express, guard: ReturnType<typeof once>, effect: () => Promise<void>): void {
  app.post("/chunks", guard, async (_req, res) => {
    await effect();
    res.writeHead(201, "Charged", { "content-type": "text/plain", "x-request-id": "r-1" });
    if (!res.headersSent) throw new Error("a head that was written looks sent");
    for (const chunk of ["one", "two"]) await new Promise((written) => res.write(chunk, written));
    res.end("three");
  });
  app.post("/pipe", guard, async (req, res) => {
    await effect();
    const chunk = Buffer.alloc(64 * 1024, "x");
    Readable.from(Array(Number(req.query.chunks)).fill(chunk)).pipe(res);
  });
  app.post("/breaks", guard, async (_req, res, next) => {
    await effect();
    res.write("half of");
    next(new Error("the other half is missing"));
  });
  app.post("/declines", guard, async (_req, _res, next) => {
    await effect();
    next(Object.assign(new Error("card declined"), { status: 402 }));
  });
  app.use((error: Error & { status?: number }, _req: Request, res: Response, next: NextFunction) => {
    if (res.headersSent) return next(error);
    res.status(error.status ?? 500).json({ error: error.message });
  });
}

const charged = { status: 201, body: Buffer.from("charged") };

function onlyExpress(begin: Worlds["begin"]): void {
  describe("of node:http", () => {
    test("chunks, and a head written by hand, are replayed as one answer", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      for (const _ of [1, 2]) {
        const sent = await world.send({ path: "/chunks" });
        expect(sent).toMatchObject({ status: 201, body: Buffer.from("onetwothree") });
        expect(sent.headers["content-type"]).toBe("text/plain");
      }
      expect(effect).toHaveBeenCalledOnce();
    });

    test.each([1, 48])("a stream of %i chunks of 64 KiB reaches its client whole", async (chunks) => {
      const world = await begin(() => charged);
      const { body } = await world.send({ path: `/pipe?chunks=${chunks}` });
      expect(body.byteLength).toBe(chunks * 64 * 1024);
    });

    test("an answer that breaks off releases the claim", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect, { options: { waitMs: 10_000 } });
      await expect(world.send({ path: "/breaks" })).rejects.toThrow();
      await expect(world.send({ path: "/breaks" })).rejects.toThrow();
      expect(effect).toHaveBeenCalledTimes(2);
    });

    test("an error handler's answer is one like any other", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      expect((await world.send({ path: "/declines" })).status).toBe(402);
      expect((await world.send({ path: "/declines" })).headers["idempotency-replayed"]).toBe("true");
      expect(effect).toHaveBeenCalledOnce();
    });

    test("a body that nobody parsed is an error, and nothing runs", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      expect((await world.send({ path: "/unparsed" })).status).toBe(500);
      expect(effect).not.toHaveBeenCalled();
    });
  });
}

describeHttpAdapter("express", startApp, { parses: true, routes: true }, onlyExpress);
