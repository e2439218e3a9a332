import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { expect, test } from "vitest";
import { type IdempotencyVariables, idempotency } from "../../../clients/typescript/src/hono.ts";
import { restoreGlobals } from "../../helpers/own-globals.ts";
import { responseOf } from "./fetch-reply.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { StartApp, Worlds } from "./http-world.ts";
import { listen } from "./listen.ts";

restoreGlobals();

const startApp: StartApp = (onceward, options, effect) => {
  const once = idempotency(onceward, { ...options, caller: (c) => c.req.header("x-account") ?? "" });
  const app = new Hono<{ Variables: IdempotencyVariables }>();
  // The default one prints.
  app.onError((_, c) => c.text("Internal Server Error", 500));
  app.use(cors());
  app.post("/echo", once, async (c) => c.json(await c.req.json()));
  for (const path of ["/charges/:id", "/refunds/:id"]) {
    app.all(path, once, async (c) => responseOf(await effect(c.get("claim"))));
  }
  return listen(createAdaptorServer({ fetch: app.fetch }) as Server);
};

const charged = { status: 201, body: Buffer.from("charged") };

function onlyHono(begin: Worlds["begin"]): void {
  test("an outer middleware's headers are on the first answer and on its replay", async () => {
    const world = await begin(() => charged);
    for (const _ of [1, 2]) {
      expect((await world.send()).headers["access-control-allow-origin"]).toBe("*");
    }
  });

  test("a handler reads the body that was fingerprinted", async () => {
    const world = await begin(() => charged);
    expect((await world.send({ path: "/echo", body: '{"amount":1}' })).body.toString()).toBe('{"amount":1}');
  });
}

describeHttpAdapter("hono", startApp, { parses: false, routes: true }, onlyHono);
