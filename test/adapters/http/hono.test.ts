import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import type { Claim } from "@onceward/client";
import { type Context, Hono, type Next } from "hono";
import { cors } from "hono/cors";
import { expect, expectTypeOf, test, vi } from "vitest";
import { type IdempotencyVariables, idempotency } from "../../../clients/typescript/src/hono.ts";
import { createTestingOnceward } from "../../../clients/typescript/src/testing.ts";
import { responseOf } from "./fetch-reply.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { Begin, StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";

const startApp: StartApp = (onceward, options, effect) => {
  const once = idempotency(onceward, { ...options, caller: (c) => c.req.header("x-account") ?? "" });
  const app = new Hono<{ Variables: IdempotencyVariables }>();
  // The default error handler prints errors.
  app.onError((_, c) => c.text("Internal Server Error", 500));
  app.use(cors());
  app.post("/echo", once, async (c) => c.json(await c.req.json()));
  app.post("/raw", once, async (c) => new Response(await c.req.raw.text()));
  app.post("/forms", parseForm, once, async (c) => responseOf(await effect(c.get("claim"))));
  app.post("/twice", once, once, async (c) => responseOf(await effect(c.get("claim"))));
  for (const path of ["/charges/:id", "/refunds/:id"]) {
    app.all(path, once, async (c) => responseOf(await effect(c.get("claim"))));
  }
  return listen(createAdaptorServer({ fetch: app.fetch }) as Server);
};

/** Reads the form, as a validator of forms does. */
async function parseForm(c: Context, next: Next): Promise<void> {
  await c.req.parseBody();
  await next();
}

const charged = { status: 201, body: Buffer.from("charged") };

function onlyHono(begin: Begin): void {
  test("an outer middleware's headers are on the first answer and on its replay", async () => {
    const world = await begin(() => charged);
    for (const _ of [1, 2]) {
      expect((await world.send()).headers["access-control-allow-origin"]).toBe("*");
    }
  });

  test.each(["/echo", "/raw"])("a handler reads the body that was fingerprinted: %s", async (path) => {
    const world = await begin(() => charged);
    expect((await world.send({ path, body: '{"amount":1}' })).body.toString()).toBe('{"amount":1}');
  });

  test("a form that a validator has read has a fingerprint of its content", async () => {
    const effect = vi.fn(() => charged);
    const world = await begin(effect);
    const sendForm = (boundary: string, file: string) =>
      world.send({
        path: "/forms",
        headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
        body: `--${boundary}\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n${file}\r\n--${boundary}--\r\n`,
      });
    expect((await sendForm("a", "invoice 1")).status).toBe(201);
    expect((await sendForm("b", "invoice 1")).status).toBe(201);
    expect((await sendForm("a", "invoice 2")).status).toBe(422);
    expect(effect).toHaveBeenCalledOnce();
  });
}

test("a handler after the middleware knows the claim's type", () => {
  const { onceward } = createTestingOnceward();
  const guard = idempotency(onceward, { namespace: "charges", caller: () => "a-1" });
  new Hono<{ Variables: { account: string } }>().post("/charges", guard, (c) => {
    expectTypeOf(c.var.claim).toEqualTypeOf<Claim | undefined>();
    expectTypeOf(c.var.account).toEqualTypeOf<string>();
    return c.text("charged");
  });
});

describeHttpAdapter("hono", startApp, { routes: true }, onlyHono);
