import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { stream } from "hono/streaming";
import { type IdempotencyVariables, idempotency } from "../../../clients/typescript/src/hono.ts";
import { idempotent } from "../../../clients/typescript/src/http.ts";
import { listen } from "./listen.ts";
import type { Steps } from "./steps.ts";
import * as ways from "./ways-to-answer.ts";

interface FetchWay extends ways.WayFacts {
  handle(steps: Steps): Promise<Response>;
}

interface HonoWay extends ways.WayFacts {
  handle(c: Context, steps: Steps): Promise<Response> | Response;
}

const FETCH_WAYS: Record<string, FetchWay> = {
  "a Response": {
    ...ways.answers,
    handle: async () => Response.json({ charge: "ch_1" }, { status: 201 }),
  },
  "a refusal": {
    ...ways.answers,
    handle: async () => new Response("card declined", { status: 402 }),
  },
  "a stream": {
    ...ways.answersInParts,
    handle: async (steps) => new Response(bytesOf(steps.body())),
  },
  "an error": {
    ...ways.fails,
    async handle() {
      throw new Error("the provider is down");
    },
  },
  "a stream that breaks": {
    ...ways.breaks,
    handle: async (steps) => new Response(bytesOf(ways.brokenBody(steps))),
  },
  "no answer": { ...ways.neverEnds, handle: ways.forever },
  "a stream without an end": {
    ...ways.neverEnds,
    handle: async () => new Response(new ReadableStream()),
  },
};

const HONO_WAYS: Record<string, HonoWay> = {
  ...Object.fromEntries(
    Object.entries(FETCH_WAYS).map(([name, { handle, ...facts }]) => [
      name,
      { ...facts, handle: (_: Context, steps: Steps) => handle(steps) },
    ]),
  ),
  "c.json": { ...ways.answers, handle: (c) => c.json({ charge: "ch_1" }, 201) },
  "the helper stream": {
    ...ways.answersInParts,
    handle: (c, steps) =>
      stream(c, async (output) => {
        for await (const part of steps.body()) await output.write(part);
      }),
  },
  "an HTTPException": {
    ...ways.answers,
    handle() {
      throw new HTTPException(402, { message: "card declined" });
    },
  },
};

function bytesOf(body: AsyncIterable<string>): ReadableStream<Uint8Array> {
  return ReadableStream.from<string>(body).pipeThrough(new TextEncoderStream());
}

/** The ways to answer of a fetch handler. */
export const fetchWays: ways.WaysToAnswer = {
  ways: FETCH_WAYS,
  start(onceward, options, steps) {
    const guarded = idempotent(onceward, { ...options, caller: () => "a-1" }, (request, claim) => {
      const { pathname } = new URL(request.url);
      const way = Object.entries(FETCH_WAYS).find(([name]) => ways.pathOf(name) === pathname)?.[1];
      if (way === undefined) throw new Error(`no way to answer has the path ${pathname}`);
      return steps.run(claim, () => way.handle(steps));
    });
    const answer = (request: Request) =>
      guarded(request).catch(() => new Response("Internal Server Error", { status: 500 }));
    return listen(createAdaptorServer({ fetch: answer }) as Server);
  },
};

/** The ways to answer in Hono. */
export const honoWays: ways.WaysToAnswer = {
  ways: HONO_WAYS,
  start(onceward, options, steps) {
    const app = new Hono<{ Variables: IdempotencyVariables }>();
    // The default error handler prints errors.
    app.onError((error, c) =>
      error instanceof HTTPException ? error.getResponse() : c.text("Internal Server Error", 500),
    );
    const guard = idempotency(onceward, { ...options, caller: () => "a-1" });
    for (const [name, way] of Object.entries(HONO_WAYS)) {
      app.post(ways.pathOf(name), guard, (c) => steps.run(c.get("claim"), async () => way.handle(c, steps)));
    }
    return listen(createAdaptorServer({ fetch: app.fetch }) as Server);
  },
};
