/** `@onceward/client/fastify`: the Idempotency-Key header as a plugin of Fastify 5. */

import { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import type { Claim } from "./held-claim.ts";
import { readBounded } from "./http/bounded-body.ts";
import { createGuard, type Guard, type Handled, type NotHandled, ResponseCut } from "./http/guard.ts";
import type { HttpOptions } from "./http/options.ts";
import { splitTarget } from "./http/request-target.ts";
import { IDEMPOTENCY_KEY } from "./idempotency-key.ts";
import type { Runner } from "./runner.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The claim that the handler runs under; undefined for a request that is not guarded. */
    claim?: Claim;
  }
}

/**
 * A plugin that guards the routes of the scope it is registered in: one effect and one answer for all requests with one
 * Idempotency-Key, with the promises of `idempotent` in `@onceward/client/http`. It begins before the handler, after
 * parsing and validation, so that what they refuse never claims a key.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotency } from "@onceward/client/fastify";
 * import Fastify from "fastify";
 *
 * const onceward = createOnceward({ address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY });
 * const app = Fastify();
 *
 * await app.register(idempotency(onceward, { namespace: "charges", caller: (request) => request.account.id }));
 * app.post("/charges", async (request, reply) => {
 *   reply.code(201);
 *   return await provider.charge(request.body, { idempotencyKey: request.claim?.deriveKey("provider") });
 * });
 * ```
 *
 * - The key counts per caller, method and route (`/charges/:id/refunds`).
 * - The fingerprint is of `request.body`: JSON by value, bytes as they are. A parser that leaves a stream there, or keeps
 *   files elsewhere (multipart), needs `fingerprint`.
 * - An error that a handler throws becomes a response of the error handler, and counts as one.
 * - A reply that is hijacked releases the claim once it is sent.
 *
 * @throws TypeError for an option that can't be meant.
 */
export function idempotency(onceward: Runner, options: HttpOptions<FastifyRequest>): FastifyPluginCallback {
  const guard = createGuard(onceward, options);
  const plugin: FastifyPluginCallback = (app, _, done) => {
    const underway = new WeakMap<FastifyRequest, Underway>();
    if (!app.hasRequestDecorator("claim")) app.decorateRequest("claim", undefined);
    app.addHook("preHandler", async (request, reply) => {
      const begun = await begin(guard, request);
      switch (begun.kind) {
        case "claimed":
          request.claim = begun.claim;
          underway.set(request, begun);
          return;
        case "unguarded":
          return;
        case "answered": {
          const { status, headers, body } = begun.response;
          return (
            reply
              .code(status)
              .headers(headers)
              // The first versions of Fastify 4 take no other bytes than a Buffer.
              .send(body?.byteLength ? Buffer.from(body) : undefined)
          );
        }
      }
    });
    app.addHook("onSend", async (request, reply, payload) => {
      const handling = underway.get(request);
      if (handling === undefined) return payload;
      underway.delete(request);
      handling.settle(readReply(reply, payload));
      return await handling.sent;
    });
    app.addHook("onResponse", async (request) => {
      underway.get(request)?.settle(Promise.reject(new ResponseCut()));
    });
    done();
  };
  // Its hooks are the scope's that registers it, not those of a scope of its own (Fastify's reference, "Plugins").
  return Object.assign(plugin, { [Symbol.for("skip-override")]: true });
}

/** A handler that runs under a claim, which is told what was answered, and then tells what is to be sent. */
interface Underway {
  readonly kind: "claimed";
  readonly claim: Claim;
  settle(handled: Promise<Handled<unknown>>): void;
  readonly sent: Promise<unknown>;
}

/** Returns the pattern of a request's route; Fastify has `routeOptions` since 4.10, and had `routerPath` before. */
function routeOf(request: FastifyRequest): string | undefined {
  const { routeOptions, routerPath }: Partial<FastifyRequest> & { readonly routerPath?: string } = request;
  return routeOptions === undefined ? routerPath : routeOptions.url;
}

/** Resolves as soon as it is known whether the handler is to be called. */
function begin(guard: Guard<FastifyRequest>, request: FastifyRequest): Promise<Underway | NotHandled> {
  const { path, query } = splitTarget(request.url);
  const guarded = {
    native: request,
    method: request.method,
    route: routeOf(request) ?? path,
    path,
    query,
    key: request.headers[IDEMPOTENCY_KEY]?.toString(),
    body: () => request.body,
  };
  return new Promise((decide, refuse) => {
    const answered = guard(guarded, (claim) => {
      return new Promise<Handled<unknown>>((settle) => {
        decide({ kind: "claimed", claim, settle, sent });
      });
    });
    const sent = answered.then((answer) => {
      if (answer.kind === "handled") return answer.sent;
      decide(answer);
      return undefined;
    });
    sent.catch(refuse);
  });
}

/** What was answered, and what is to be sent: a stream becomes bytes, unless it is larger than any policy takes. */
async function readReply(reply: FastifyReply, payload: unknown): Promise<Handled<unknown>> {
  const content = payload instanceof Response ? takeResponse(reply, payload) : payload;
  const answered = { status: reply.statusCode, headers: reply.getHeaders() };
  if (content === null || content === undefined) {
    return { ...answered, body: new Uint8Array(), sent: content };
  }
  if (typeof content === "string" || content instanceof Uint8Array) {
    return { ...answered, body: Buffer.from(content), sent: content };
  }
  // What Fastify sends otherwise are streams, of Node or of the web; it refuses anything else itself.
  const read = await readBounded(content as AsyncIterable<Uint8Array | string>);
  if (read.kind === "whole") {
    return { ...answered, body: read.bytes, sent: Buffer.from(read.bytes) };
  }
  return { ...answered, body: undefined, sent: Readable.from(read.chunks) };
}

/** Fastify takes a fetch Response apart after this hook; the status and the headers are needed before. */
function takeResponse(reply: FastifyReply, { status, headers, body }: Response): unknown {
  reply.code(status);
  for (const [name, value] of headers) reply.header(name, value);
  return body;
}
