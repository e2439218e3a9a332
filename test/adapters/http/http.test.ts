import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { type FetchHandler, idempotent } from "../../../clients/typescript/src/http.ts";
import { restoreGlobals } from "../../helpers/processes/own-globals.ts";
import { responseOf } from "./fetch-reply.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";

restoreGlobals();

const startApp: StartApp = (onceward, options, effect) => {
  const own = { ...options, caller: (request: Request) => request.headers.get("x-account") ?? "" };
  const handler: FetchHandler = async (_, claim) => responseOf(await effect(claim));
  const once = idempotent(onceward, own, handler);
  const twice = idempotent(onceward, own, (request) => idempotent(onceward, own, handler)(request));
  const answer = (request: Request) =>
    (new URL(request.url).pathname === "/twice" ? twice : once)(request).catch(
      () => new Response("Internal Server Error", { status: 500 }),
    );
  return listen(createAdaptorServer({ fetch: answer }) as Server);
};

describeHttpAdapter("fetch", startApp, { routes: false });
