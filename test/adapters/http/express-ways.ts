import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pipeline, Readable } from "node:stream";
import { pipeline as pipelinePromise } from "node:stream/promises";
import type express from "express";
import type { Response } from "express";
import { idempotency } from "../../../clients/typescript/src/express.ts";
import { listen } from "./listen.ts";
import type { Steps } from "./steps.ts";
import * as ways from "./ways-to-answer.ts";

interface ExpressWay extends ways.WayFacts {
  handle(res: Response, steps: Steps): Promise<unknown>;
}

/**
 * Waits for the end of a response, as the logger morgan does; Express's `sendFile` waits for the same event.
 */
const onFinished = createRequire(import.meta.resolve("express"))("on-finished") as (
  res: Response,
  listener: () => void,
) => void;

const WAYS: Record<string, ExpressWay> = {
  json: {
    ...ways.answers,
    handle: async (res) => res.status(201).json({ charge: "ch_1" }),
  },
  write: {
    ...ways.answersInParts,
    async handle(res, steps) {
      for await (const part of steps.body()) res.write(part);
      res.end();
    },
  },
  writeHead: {
    ...ways.answersInParts,
    async handle(res, steps) {
      res.writeHead(201, { "content-type": "text/plain" });
      await steps.reach("written");
      if (!res.headersSent) throw new Error("a head that was written looks sent");
      res.end("charged");
    },
  },
  flushHeaders: {
    ...ways.answersInParts,
    async handle(res, steps) {
      res.status(201).type("text/plain").flushHeaders();
      await steps.reach("written");
      res.end("charged");
    },
  },
  sendFile: { ...ways.answers, handle: async (res) => res.sendFile(import.meta.filename) },
  pipe: {
    ...ways.answersInParts,
    async handle(res, steps) {
      const source = Readable.from(steps.body());
      source.pipe(res);
      await once(source, "end");
    },
  },
  "await pipeline": {
    ...ways.answersInParts,
    handle: (res, steps) => pipelinePromise(Readable.from(steps.body()), res),
  },
  "pipeline with a callback": {
    ...ways.answersInParts,
    async handle(res, steps) {
      const source = Readable.from(steps.body());
      pipeline(source, res, () => {});
      await once(source, "close");
    },
  },
  "an error handler": {
    ...ways.answers,
    async handle() {
      throw Object.assign(new Error("card declined"), { status: 402 });
    },
  },
  "an error": {
    ...ways.fails,
    async handle() {
      throw new Error("the provider is down");
    },
  },
  "an error in the middle": {
    ...ways.breaks,
    async handle(res, steps) {
      for await (const part of ways.brokenBody(steps)) res.write(part);
    },
  },
  "a pipeline that breaks": {
    ...ways.breaks,
    handle: (res, steps) => pipelinePromise(Readable.from(ways.brokenBody(steps)), res),
  },
  "destroy in the middle": {
    ...ways.breaks,
    async handle(res, steps) {
      res.write("one ");
      await steps.reach("written");
      res.destroy();
    },
  },
  "destroy of the connection in the middle": {
    ...ways.breaks,
    async handle(res, steps) {
      res.write("one ");
      await steps.reach("written");
      res.req.socket.destroy();
    },
  },
  "no answer": { ...ways.neverEnds, handle: async () => {} },
  "half an answer": {
    ...ways.neverEnds,
    handle: async (res) => res.write("one "),
  },
};

/** Returns the ways to answer in a version of Express. */
export function expressWays(createApp: typeof express): ways.WaysToAnswer {
  return {
    ways: WAYS,
    start(onceward, options, steps) {
      const app = createApp();
      // In a test environment, the default error handler does not print errors.
      app.set("env", "test");
      app.use((_req, res, next) => {
        onFinished(res, () => {});
        next();
      });
      app.use(createApp.json());
      const guard = idempotency(onceward, { ...options, caller: () => "a-1" });
      for (const [name, way] of Object.entries(WAYS)) {
        app.post(ways.pathOf(name), guard, (_req, res, next) => {
          steps.run(res.locals.claim, () => way.handle(res, steps)).catch(next);
        });
      }
      return listen(createServer(app));
    },
  };
}
