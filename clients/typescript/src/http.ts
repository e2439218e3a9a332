/**
 * `@onceward/client/http`: the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07) for fetch-style
 * handlers, and the types that the adapters of frameworks share.
 */

import { checkFunction } from "./errors/violations.ts";
import { goneResponse, handleFetch, toResponse, withHeaders } from "./http/fetch-response.ts";
import { createGuard } from "./http/guard.ts";
import type { HttpOptions } from "./http/options.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export { storesGraphql } from "./http/graphql.ts";
export type { Answer, Guard, GuardedRequest, Handled, Handling, NotHandled } from "./http/guard.ts";
export { createGuard, REQUEST_ID_HEADER } from "./http/guard.ts";
export type { HandlerResponse, HttpOptions, Stores } from "./http/options.ts";
export { type OutgoingCall, type OutgoingOptions, withIdempotencyKeys } from "./http/outgoing.ts";
export type { Problem, ProblemBody, ProblemType } from "./http/problems.ts";
export type { HttpProfile } from "./http/profiles.ts";
export type { WholeResponse } from "./http/whole-response.ts";
export { formatIdempotencyKey, parseIdempotencyKey } from "./keys/idempotency-key.ts";
export { NoEffectError, OutcomeUnknownError } from "./run/outcome-unknown.ts";

/**
 * A fetch-style handler. The claim is undefined for a request that is not guarded. `Rest` are the platform's arguments
 * after the request: `env` and `ctx` of Workers, the context with `params` of a Next.js route.
 */
export type FetchHandler<Rest extends readonly unknown[] = []> = (
  request: Request,
  claim: Claim | undefined,
  ...rest: Rest
) => Response | Promise<Response>;

/**
 * Guards a handler: one effect and one answer for all requests with one Idempotency-Key.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotent } from "@onceward/client/http";
 *
 * const onceward = createOnceward({ address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY });
 *
 * export default {
 *   fetch: idempotent(
 *     onceward,
 *     { namespace: "charges", caller: (request) => accountOf(request) },
 *     async (request, claim) => {
 *       const charge = await provider.charge(await request.json(), { idempotencyKey: claim?.deriveKey("provider") });
 *       return Response.json(charge, { status: 201 });
 *     },
 *   ),
 * };
 * ```
 *
 * Arguments of the platform after the request reach the handler after the claim. A route of Next.js:
 *
 * ```ts
 * export const POST = idempotent(
 *   onceward,
 *   { namespace: "refunds", caller: (request) => accountOf(request) },
 *   async (request, claim, { params }: { params: Promise<{ id: string }> }) => refund((await params).id, claim),
 * );
 * ```
 *
 * - The key is a structured-field string, `Idempotency-Key: "8e03978e-40d5"`; without the quotes it is the same key.
 *   It counts per caller, method and route (here: path). Missing or malformed: 400.
 * - The first request runs the handler. Its response is stored before it is sent; every later request with the key
 *   gets its status, body and the headers that describe it, byte for byte, marked `Idempotency-Replayed: true`.
 * - While the first request runs, another one is answered with 409 and Retry-After, or waits (`waitMs`). The same key
 *   with a different request: 422.
 * - A key whose record is forgotten and that was made too long ago (the policy's `late_keys`): 410. Only keys that are UUIDs of
 *   version 1, 6 or 7, or ULIDs, say when they were made.
 * - Responses of 5xx, 401, 408, 425 and 429 (`stores`) are sent and not stored, so that the next attempt runs. If the
 *   handler throws, the claim is released, too, and the error is rethrown. The claim is left to the namespace's policy after 502, 504, 503
 *   without Retry-After, a response that is cut short, and a timeout that the handler throws. A handler that can't know whether it had its
 *   effect throws an {@link OutcomeUnknownError}, or an error with it as its `cause`, or calls `claim.outcomeUnknown`: the client gets 409
 *   `ambiguous`. `redirect()` and `notFound()` of Next.js throw errors, too: return a response after the effect.
 * - A client's disconnect does not stop the handler: its response is stored for the repeat. A handler that has not
 *   answered `abandonAfterMs` after the disconnect (`request.signal`) is abandoned: its lease expires.
 * - If the service is unreachable, nothing runs: 503 with Retry-After. If it becomes unreachable while the handler runs, the
 *   response is sent after `answerAfterMs`, and stored as soon as the service can.
 * - A response larger than the namespace's max_result_bytes (by default 64 KiB) is sent, and duplicates are answered
 *   with 410: the operation is done, its response is not stored. A response from 1 MiB on is streamed. A smaller one
 *   is sent once it is whole, so this does not suit event streams. The same holds for a content type of more than 255
 *   bytes and a replayed header of more than 4,096. Each emits the event `not-stored` with RESULT_TOO_LARGE.
 * - Another `profile` speaks another protocol: the draft alone, Stripe's, that of agentic commerce (ACP, UCP).
 * - Refusals are application/problem+json; their types: {@link ProblemType}. `problemBody` writes another format.
 * - The response ends the operation: work that a handler does after it is not guarded.
 *
 * The bodies of guarded requests are read whole for the fingerprint: set a limit on them in the platform to bound
 * memory.
 *
 * @throws InvalidRequestError for an invalid option. The returned handler rejects with the given handler's error, and with
 *   OncewardErrors that don't concern the HTTP client, such as a bad credential; then nothing ran.
 */
export function idempotent<Rest extends readonly unknown[] = []>(
  onceward: Runner,
  options: HttpOptions<Request>,
  handler: FetchHandler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  checkFunction("handler", handler);
  const guard = createGuard(onceward, options);
  return async (request, ...rest) => {
    const { pathname, search } = new URL(request.url);
    const ours = new Headers();
    const guarded = {
      native: request,
      method: request.method,
      route: pathname,
      path: pathname,
      query: search,
      header: (name: string) => request.headers.get(name) ?? undefined,
      body: async () => new Uint8Array(await request.clone().arrayBuffer()),
      setHeader: (name: string, value: string) => ours.set(name, value),
    };
    const answer = await guard(guarded, (claim) =>
      handleFetch(request, async () => await handler(request, claim, ...rest)),
    );
    switch (answer.kind) {
      case "unguarded":
        return await handler(request, answer.claim, ...rest);
      case "handled":
        return withHeaders(answer.sent, ours);
      case "answered":
        return withHeaders(toResponse(answer.response), ours);
      case "gone":
        return goneResponse();
    }
  };
}
