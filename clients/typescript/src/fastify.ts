/** `@onceward/client/fastify`: the Idempotency-Key header as a plugin of Fastify 4 and 5. */

import { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { attachedForm } from "./http/attached-form.ts";
import { readWhole } from "./http/bounded-body.ts";
import {
  createGuard,
  type Guard,
  type Handled,
  type Handling,
  type NotHandled,
  ResponseDestroyed,
} from "./http/guard.ts";
import { HeldResponse } from "./http/held-response.ts";
import { parsedBody, splitTarget } from "./http/node-request.ts";
import type { HttpOptions } from "./http/options.ts";
import type { WholeResponse } from "./http/whole-response.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { bindScope } from "./run/current-claim.ts";
import { NoEffectError } from "./run/outcome-unknown.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The claim that the handler runs under; undefined for a request that is not guarded. */
    claim?: Claim;
  }
}

/**
 * Returns a plugin that guards the routes of the scope it is registered in: one effect and one answer for all
 * requests with one Idempotency-Key, with the guarantees of `idempotent` in `@onceward/client/http`. It runs after
 * parsing and validation, so that a request that they refuse claims no key.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotency } from "@onceward/client/fastify";
 * import Fastify from "fastify";
 *
 * // What your authentication sets.
 * declare module "fastify" {
 *   interface FastifyRequest {
 *     account: { id: string };
 *   }
 * }
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
 * - The fingerprint is of `request.body`: JSON by value, or bytes. Without a `fingerprint` option, a body of which
 *   the parser keeps a part elsewhere (a stream, a multipart form) is an error: different requests would have the
 *   same fingerprint. A form whose fields and files are in the body (`attachFieldsToBody: "keyValues"` of
 *   `@fastify/multipart`) counts by these.
 * - If a handler throws, the error handler's response counts as its response. After an OutcomeUnknownError, the client gets 409
 *   `ambiguous` instead, and the claim is left to the namespace's policy.
 * - Data that a handler writes to `reply.raw` itself, such as after `hijack`, is held back and replayed, too.
 * - Until the response is whole, the handler does not see that its client has disconnected: `reply.raw` stays
 *   writable, and `close` is emitted later. Always answer: after a disconnect, the claim is kept for
 *   `abandonAfterMs`.
 * - A second guard of the same namespace lets a guarded request pass.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function idempotency(onceward: Runner, options: HttpOptions<FastifyRequest>): FastifyPluginCallback {
  const guard = createGuard(onceward, options);
  const plugin: FastifyPluginCallback = (app, _, done) => {
    const underway = new WeakMap<FastifyRequest, Underway>();
    const untyped = new WeakSet<FastifyRequest>();
    if (!app.hasRequestDecorator("claim")) app.decorateRequest("claim", undefined);
    const proceed = (
      begun: Underway | NotHandled,
      request: FastifyRequest,
      reply: FastifyReply,
      done: Done,
    ) => {
      switch (begun.kind) {
        case "claimed":
          request.claim = begun.claim;
          underway.set(request, begun);
          return begun.within(done);
        case "unguarded":
          return done();
        case "answered": {
          const { status, headers, body } = begun.response;
          if (headers["content-type"] === undefined) untyped.add(request);
          // A Buffer, because some versions of Fastify 4 serialize other byte arrays.
          const payload = body?.byteLength ? Buffer.from(body) : undefined;
          reply.code(status).headers(headers).send(payload);
        }
      }
    };
    // With a callback, which Fastify calls the handler from: after an async hook, the handler would have no current claim.
    app.addHook("preHandler", (request, reply, done) => {
      begin(guard, request, reply)
        .then((begun) => proceed(begun, request, reply, done))
        .catch(done);
    });
    app.addHook("onSend", async (request, reply, payload) => {
      // Fastify sets a content type for bytes, which the first response did not have.
      if (untyped.has(request)) reply.removeHeader("content-type");
      const begun = underway.get(request);
      if (begun === undefined) return payload;
      underway.delete(request);
      begun.handling.settle(payload);
      return await begun.sent;
    });
    done();
  };
  // The hooks belong to the registering scope, not to a scope of the plugin's own (Fastify's reference, "Plugins").
  return Object.assign(plugin, { [Symbol.for("skip-override")]: true });
}

type Done = (error?: Error) => void;

interface Underway {
  readonly kind: "claimed";
  readonly claim: Claim;
  readonly handling: FastifyHandling;
  /** Calls a function within the claim's scope. */
  readonly within: ReturnType<typeof bindScope>;
  /** The payload for Fastify to send; resolves once the outcome is stored. */
  readonly sent: Promise<unknown>;
}

/** Resolves as soon as it is known whether the handler must be called. */
function begin(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Underway | NotHandled> {
  const { path, query } = splitTarget(request.url);
  const guarded = {
    native: request,
    method: request.method,
    route: routeOf(request) ?? path,
    path,
    query,
    header: (name: string) => request.headers[name]?.toString(),
    body: () => attachedForm(request) ?? parsedBody(request.raw, request.body),
    setHeader: (name: string, value: string) => void reply.header(name, value),
  };
  return new Promise((decide, refuse) => {
    let handling: FastifyHandling | undefined;
    const answered = guard(guarded, (claim) => {
      // Such as by `handlerTimeout`, during the claim: Fastify does not call the handler.
      if (reply.sent) throw new ResponseDestroyed(new NoEffectError("The request was answered before."));
      handling = new FastifyHandling(request, reply);
      decide({ kind: "claimed", claim, handling, within: bindScope(), sent });
      return handling;
    });
    const sent = answered
      .then((answer) => {
        if (answer.kind === "handled") return answer.sent;
        if (answer.kind === "answered" && handling !== undefined) return handling.replace(answer.response);
        if (answer.kind !== "gone") decide(answer);
        else if (handling === undefined) decide({ kind: "unguarded", claim: undefined });
        // Undefined would leave the payload as it is.
        return null;
      })
      .finally(() => handling?.held.send());
    sent.catch(refuse);
  });
}

/** Returns the pattern of the request's route. Before 4.10, Fastify had it in `routerPath`. */
function routeOf(request: Partial<FastifyRequest> & { readonly routerPath?: string }): string | undefined {
  return request.routeOptions === undefined ? request.routerPath : request.routeOptions.url;
}

/** A handler whose response Fastify sends (`settle`), or that writes it itself to a hijacked reply. */
class FastifyHandling implements Handling<unknown> {
  readonly handled: Promise<Handled<unknown>>;
  readonly held: HeldResponse;
  readonly #reading = new AbortController();
  readonly #reply: FastifyReply;
  readonly #headersBefore: ReturnType<FastifyReply["getHeaders"]>;
  #isSettled = false;
  #settle: (handled: Promise<Handled<unknown>>) => void = () => {};

  constructor(request: FastifyRequest, reply: FastifyReply) {
    this.#reply = reply;
    this.#headersBefore = reply.getHeaders();
    this.held = new HeldResponse(request.raw, reply.raw);
    this.#noteErrors();
    const settled = new Promise<Handled<unknown>>((resolve) => {
      this.#settle = resolve;
    });
    const written = this.held.handled.then((handled) => ({ ...handled, sent: null }));
    this.handled = Promise.race([settled, written]);
  }

  get disconnected(): AbortSignal {
    return this.held.disconnected;
  }

  /** Takes the payload that Fastify is about to send. */
  settle(payload: unknown): void {
    this.#isSettled = true;
    const { unknown } = this.held;
    if (unknown !== undefined) this.#settle(Promise.reject(unknown));
    else this.#settle(this.#read(payload));
  }

  async #read(payload: unknown): Promise<Handled<unknown>> {
    const { error } = this.held;
    return { ...(await readReply(this.#reply, payload, this.#reading.signal)), error };
  }

  /** Returns the payload of another response, for Fastify to send, unless the handler has written its own. */
  replace(response: WholeResponse): unknown {
    if (!this.#isSettled) {
      this.held.replace(response);
      return null;
    }
    this.held.discard();
    const reply = this.#reply;
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
    reply.code(response.status).headers({ ...this.#headersBefore, ...response.headers });
    return Buffer.from(response.body ?? "");
  }

  /** Fastify sends the errors of handlers and hooks, thrown or not, by this method. The hook `onError` misses some. */
  #noteErrors(): void {
    const reply = this.#reply;
    const { send } = reply;
    reply.send = (...args) => {
      this.held.noteError(args[0]);
      return Reflect.apply(send, reply, args);
    };
  }

  abandon(): void {
    this.held.abandon();
    this.#reading.abort();
  }
}

/** Returns the response and the payload to send: a stream becomes bytes, unless it is larger than any policy allows. */
async function readReply(
  reply: FastifyReply,
  payload: unknown,
  abandoned: AbortSignal,
): Promise<Handled<unknown>> {
  const content = payload instanceof Response ? takeResponse(reply, payload) : payload;
  const answered = { status: reply.statusCode, headers: reply.getHeaders() };
  if (content === null || content === undefined) {
    return { ...answered, body: new Uint8Array(), sent: content };
  }
  if (typeof content === "string" || content instanceof Uint8Array) {
    return { ...answered, body: Buffer.from(content), sent: content };
  }
  // Other payloads are streams, of Node or of the web; Fastify itself refuses anything else.
  const read = await readWhole(content as AsyncIterable<Uint8Array | string>, abandoned);
  if (read.kind === "whole") {
    return { ...answered, body: read.bytes, sent: Buffer.from(read.bytes) };
  }
  return { ...answered, body: undefined, sent: Readable.from(read.chunks) };
}

/** Applies the status and headers of a fetch Response, which Fastify would do after this hook. Returns its body. */
function takeResponse(reply: FastifyReply, { status, headers, body }: Response): unknown {
  reply.code(status);
  for (const [name, value] of headers) reply.header(name, value);
  return body;
}
