import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { idempotent } from "../../../clients/typescript/src/http.ts";
import { restoreGlobals } from "../../helpers/own-globals.ts";
import { responseOf } from "./fetch-reply.ts";
import { describeHttpAdapter } from "./http-conformance.ts";
import type { StartApp } from "./http-world.ts";
import { listen } from "./listen.ts";

restoreGlobals();

const startApp: StartApp = (onceward, options, effect) => {
  const once = idempotent(
    onceward,
    { ...options, caller: (request) => request.headers.get("x-account") ?? "" },
    async (_, claim) => responseOf(await effect(claim)),
  );
  const answer = (request: Request) =>
    once(request).catch(() => new Response("Internal Server Error", { status: 500 }));
  return listen(createAdaptorServer({ fetch: answer }) as Server);
};

describeHttpAdapter("fetch", startApp, { parses: false, routes: false });
