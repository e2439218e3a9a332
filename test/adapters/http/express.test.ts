import { createServer } from "node:http";
import { Readable } from "node:stream";
import type { Claim, Onceward } from "@onceward/client";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { describe, expect, test, vi } from "vitest";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { openSocket } from "../../support/network/raw-socket.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { Begin, CommonOptions, Reply, StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";

const startWith =
  (createApp: typeof express): StartApp =>
  (onceward, options, effect) => {
    const app = createApp();
    // In a test environment, the default handler does not print errors that it answers with 500.
    app.set("env", "test");
    app.use("/unparsed", once(onceward, options), async (_req, res) =>
      answer(res, await effect(res.locals.claim)),
    );
    app.post("/json", createApp.json(), once(onceward, options), async (_req, res) =>
      answer(res, await effect(res.locals.claim)),
    );
    app.post("/forms", parseForm, once(onceward, options), async (_req, res) =>
      answer(res, await effect(res.locals.claim)),
    );
    app.post("/upload", once(onceward, options), (req, res, next) => {
      const upload = async () => {
        const reply = await effect(res.locals.claim);
        for await (const _ of req);
        answer(res, reply);
      };
      upload().catch(next);
    });
    app.use(createApp.json(), createApp.text(), createApp.urlencoded({ extended: false }));
    const twice = once(onceward, options);
    app.post("/twice", twice, twice, once(onceward, options), async (_req, res) =>
      answer(res, await effect(res.locals.claim)),
    );
    for (const path of ["/charges/:id", "/refunds/:id"]) {
      // Express 4 doesn't wait for promises.
      app.all(path, once(onceward, options), (_req, res, next) => {
        Promise.resolve(effect(res.locals.claim)).then((reply) => answer(res, reply), next);
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

/** Wraps the response's methods, as the package compression does. */
function wrapWrites(_req: Request, res: Response, next: NextFunction): void {
  const { write, end } = res;
  Object.assign(res, {
    write: (...args: unknown[]) => Reflect.apply(write, res, args),
    end: (...args: unknown[]) => Reflect.apply(end, res, args),
  });
  next();
}

/**
 * Parses the form's fields into the body, and its files into another property, as the package multer does.
 */
async function parseForm(req: Request, _res: Response, next: NextFunction): Promise<void> {
  for await (const _ of req);
  req.body = { title: "invoice" };
  next();
}

/** Adds handlers that write in ways that only node:http allows. */
function addStreams(app: Express, guard: ReturnType<typeof once>, effect: () => Promise<void>): void {
  app.post("/pipe", guard, async (req, res) => {
    await effect();
    const chunk = Buffer.alloc(64 * 1024, "x");
    Readable.from(Array(Number(req.query.chunks)).fill(chunk)).pipe(res);
  });
  app.post("/wrapped", guard, wrapWrites, async (_req, res) => {
    await effect();
    Readable.from(Array(48).fill(Buffer.alloc(64 * 1024, "x"))).pipe(res);
  });
  app.post("/late", guard, async (_req, res) => {
    await effect();
    res.on("error", () => {});
    res.write("charged");
    res.end();
    const refused = await new Promise((written) => res.write(", twice", written));
    res.end(`, thrice after ${refused}`);
  });
  app.post("/breaks", guard, async (_req, res, next) => {
    await effect();
    res.write("half of");
    next(new Error("the other half is missing"));
  });
  // As Express 5 does with an error that a handler throws, and Express 4 leaves to the handler.
  app.post("/throws", guard, async (_req, res, next) => {
    await effect();
    res.status(201).end("charged");
    next(new Error("the mail was not sent"));
  });
  app.use((error: Error, _req: Request, res: Response, next: NextFunction) => {
    if (res.headersSent) return next(error);
    res.status(500).json({ error: error.message });
  });
}

const PIPELINED = ["order-1", "order-2"];

/** Returns a request with only the first two bytes of its body. */
function postRequest(path: string, key: string, lengthBytes: number): string {
  return [
    `POST ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    "x-account: a-1",
    `idempotency-key: ${key}`,
    "content-type: application/json",
    `content-length: ${lengthBytes}`,
    "",
    "{}",
  ].join("\r\n");
}

/** Creates effects that the test resolves, in the order of their keys. */
function heldEffects() {
  const replies = PIPELINED.map(() => Promise.withResolvers<Reply>());
  const effect = vi.fn((claim: Claim | undefined) => {
    const index = PIPELINED.findIndex((key) => claim?.key.endsWith(key));
    return replies[index]?.promise ?? Promise.reject(new Error("not pipelined"));
  });
  return {
    effect,
    arrived: (count: number) => vi.waitFor(() => expect(effect).toHaveBeenCalledTimes(count), 30_000),
    resolve: (index: number) =>
      replies[index]?.resolve({ status: 201, body: Buffer.from(`charge ${index}`) }),
  };
}

const charged = { status: 201, body: Buffer.from("charged") };

function onlyExpress(begin: Begin): void {
  describe("of node:http", () => {
    test.each([1, 48])("a stream of %i chunks of 64 KiB reaches its client completely", async (chunks) => {
      const world = await begin(() => charged);
      const { body } = await world.send({ path: `/pipe?chunks=${chunks}` });
      expect(body.byteLength).toBe(chunks * 64 * 1024);
    });

    test("the claim in `res.locals` is typed for the handlers after the middleware", async () => {
      const guard = idempotency({} as Onceward, { namespace: "charges", caller: () => "a-1" });
      express().post("/charges/:id", express.json(), guard, (_req, res) => {
        // @ts-expect-error: a claim has no such method.
        res.locals.claim?.deriveKye("provider");
        res.json({ account: res.locals.account });
      });
    });

    test("a client that disconnects before its body is complete fails a handler that reads the body", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect, { options: { fingerprint: () => "f-1", waitMs: 10_000 } });
      const connection = await openSocket(world.port);
      await connection.send(postRequest("/upload", "order-1", 1000));
      await vi.waitFor(() => expect(effect).toHaveBeenCalledOnce(), 30_000);
      connection.socket.destroy();
      expect((await world.send({ path: "/upload" })).status).toBe(201);
      expect(effect).toHaveBeenCalledTimes(2);
    });

    test("requests on one connection leave no listeners on it", async () => {
      const world = await begin(() => charged);
      const warnings = vi.spyOn(process, "emitWarning");
      const connection = await openSocket(world.port);
      for (let count = 1; count <= 12; count++) {
        await connection.send(postRequest("/charges/1", `order-${count}`, 2));
        await vi.waitFor(() => expect(connection.received().match(/charged/g)).toHaveLength(count), 30_000);
      }
      connection.socket.destroy();
      expect(warnings).not.toHaveBeenCalled();
      warnings.mockRestore();
    });

    test("pipelined requests are answered in order", async () => {
      const { effect, arrived, resolve } = heldEffects();
      const world = await begin(effect);
      const connection = await openSocket(world.port);
      await connection.send(PIPELINED.map((key) => postRequest("/charges/1", key, 2)).join(""));
      await arrived(2);
      resolve(1);
      resolve(0);
      await vi.waitFor(() => expect(connection.received()).toMatch(/charge 0.*charge 1/s), 30_000);
      connection.socket.destroy();
    });

    test("pipelined requests whose client disconnects are carried out and replayed", async () => {
      const { effect, arrived, resolve } = heldEffects();
      const world = await begin(effect, { options: { waitMs: 10_000 } });
      const connection = await openSocket(world.port);
      const closed = world.connectionClosed();
      await connection.send(PIPELINED.map((key) => postRequest("/charges/1", key, 2)).join(""));
      await arrived(2);
      connection.socket.destroy();
      await closed;
      const repeats = PIPELINED.map((key) => world.send({ key, body: "{}" }));
      resolve(1);
      resolve(0);
      const bodies = (await Promise.all(repeats)).map(({ body }) => body.toString());
      expect(bodies).toEqual(["charge 0", "charge 1"]);
      expect(effect).toHaveBeenCalledTimes(2);
    });

    test("a response that is cut off leaves the claim to the policy", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      await expect(world.send({ path: "/breaks" })).rejects.toThrow();
      expect((await world.send({ path: "/breaks" })).status).toBe(409);
      expect(effect).toHaveBeenCalledOnce();
    });

    test("a handler that throws after its response has ended has answered", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      expect(await world.send({ path: "/throws" })).toMatchObject({ status: 201, body: charged.body });
      expect((await world.send({ path: "/throws" })).headers["idempotency-replayed"]).toBe("true");
      expect(effect).toHaveBeenCalledOnce();
    });

    test("a HEAD is replayed without the body that its handler writes", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect, { options: { methods: ["HEAD"] } });
      for (const _ of [1, 2]) {
        const { status, body } = await world.send({ method: "HEAD", body: "" });
        expect([status, body.byteLength]).toEqual([201, 0]);
      }
      expect(effect).toHaveBeenCalledOnce();
    });

    test("data written after the end is in no response", async () => {
      const world = await begin(() => charged);
      for (const _ of [1, 2]) {
        expect(await world.send({ path: "/late" })).toMatchObject({ body: Buffer.from("charged") });
      }
    });

    test("a stream larger than any policy allows, through middleware that wraps the response", async () => {
      const world = await begin(() => charged);
      expect((await world.send({ path: "/wrapped" })).body.byteLength).toBe(48 * 64 * 1024);
    });

    test("two spellings of a form are one request, and another order of a field's values is not", async () => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      const statuses: number[] = [];
      for (const body of ["a=1&b=%C3%A9+x&b=2", "b=%c3%a9%20x&a=%31&b=2", "a=1&b=2&b=%C3%A9+x"]) {
        const headers = { "content-type": "application/x-www-form-urlencoded" };
        statuses.push((await world.send({ body, headers })).status);
      }
      expect(statuses).toEqual([201, 201, 422]);
      expect(effect).toHaveBeenCalledOnce();
    });

    test.each([
      ["a body that was not parsed", "/unparsed", "application/json"],
      ["a body of another type than the parser's", "/json", "text/plain"],
      ["a multipart form, whose files are not in the body", "/forms", "multipart/form-data; boundary=b"],
    ])("%s is an error without a fingerprint, and nothing runs", async (_, path, contentType) => {
      const effect = vi.fn(() => charged);
      const world = await begin(effect);
      expect((await world.send({ path, headers: { "content-type": contentType } })).status).toBe(500);
      expect(effect).not.toHaveBeenCalled();
      const withOne = await begin(effect, { options: { fingerprint: () => "f-1" } });
      expect((await withOne.send({ path, headers: { "content-type": contentType } })).status).toBe(201);
    });
  });
}

describeHttpAdapter("Express", startWith(express), { routes: true }, onlyExpress);
