import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { expect, test } from "vitest";
import { type FetchHandler, idempotent } from "../../../clients/typescript/src/http.ts";
import { responseOf } from "./fetch-reply.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { Begin, StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";

const startApp: StartApp = (onceward, options, effect) => {
  const own = { ...options, caller: (request: Request) => request.headers.get("x-account") ?? "" };
  const handler: FetchHandler = async ({ url }, claim) => {
    const reply = await effect(claim);
    if (new URL(url).pathname !== "/text") return responseOf(reply);
    return new Response(String(reply.body), { status: reply.status, headers: { location: "/charges/1" } });
  };
  const once = idempotent(onceward, own, handler);
  const twice = idempotent(onceward, own, (request) => idempotent(onceward, own, handler)(request));
  const answer = (request: Request) =>
    (new URL(request.url).pathname === "/twice" ? twice : once)(request).catch(
      () => new Response("Internal Server Error", { status: 500 }),
    );
  return listen(createAdaptorServer({ fetch: answer }) as Server);
};

function onlyFetch(begin: Begin): void {
  test("a text with a header of its own is replayed with the first answer's content type", async () => {
    const world = await begin(() => ({ status: 201, body: Buffer.from("charged") }));
    for (const _ of [1, 2]) {
      const { body, headers } = await world.send({ path: "/text" });
      expect([String(body), headers["content-type"]]).toEqual(["charged", "text/plain;charset=UTF-8"]);
    }
  });
}

describeHttpAdapter("fetch", startApp, { routes: false }, onlyFetch);
