/**
 * `@onceward/client/http`: the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07) for handlers in the
 * style of fetch, and what the adapters of frameworks are made of.
 */

import { goneResponse, handleFetch, toResponse } from "./http/fetch-response.ts";
import { createGuard } from "./http/guard.ts";
import type { HttpOptions } from "./http/options.ts";
import { IDEMPOTENCY_KEY } from "./keys/idempotency-key.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { HttpOptions } from "./http/options.ts";
export type { Problem, ProblemBody, ProblemType } from "./http/problems.ts";
export { formatIdempotencyKey, parseIdempotencyKey } from "./keys/idempotency-key.ts";

/** A handler in the style of fetch. The claim is undefined for a request that is not guarded. */
export type FetchHandler = (request: Request, claim: Claim | undefined) => Response | Promise<Response>;

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
 * - The key is a structured-field string, `Idempotency-Key: "8e03978e-40d5"`; without the quotes it is the same key. It
 *   counts per caller, method and route (here: path). Missing or malformed: 400.
 * - The first request runs the handler. Its response is stored before it is sent; every later request with the key gets
 *   its status, body and the headers that describe it, byte for byte, marked `Idempotency-Replayed: true`.
 * - Meanwhile another one is answered with 409 and Retry-After, or waits (`waitMs`). The same key with another request: 422.
 * - A response of 5xx is sent and not stored, so that the next attempt runs; so is one of 401, 408, 425, 429 (`stores`).
 *   A handler that throws releases the claim, too, and its error comes through.
 * - Who disconnects doesn't stop the handler: its response waits for the repeat. A handler that has not answered for
 *   `abandonAfterMs` after its client left (`request.signal`) is given up: its lease runs out.
 * - When the service can't be asked, nothing runs: 503 with Retry-After.
 * - A response larger than the namespace's max_result_bytes (64 KiB unless tuned) reaches its client, and repeats are
 *   answered with 410: the operation is done, its response gone. From 1 MiB on it is passed on as it comes. Smaller ones are
 *   sent once they are whole, so this is nothing for event streams. The same holds for a content type of more than 255 bytes
 *   and a replayed header of more than 4,096. The event `not-stored` tells of each, with RESULT_TOO_LARGE.
 * - Refusals are application/problem+json; their types: {@link ProblemType}. `problemBody` writes another format.
 * - An answer ends the operation: what a handler does after it is not guarded.
 *
 * The bodies of guarded requests are read whole for the fingerprint: the platform's limit on them is what bounds memory.
 *
 * @throws TypeError for an option that can't be meant. The handler it returns rejects with what the given one throws,
 *   and with OncewardErrors that are not the client's concern, such as a bad credential; then nothing ran.
 */
export function idempotent(
  onceward: Runner,
  options: HttpOptions<Request>,
  handler: FetchHandler,
): (request: Request) => Promise<Response> {
  if (typeof handler !== "function") throw new TypeError("handler must be a function");
  const guard = createGuard(onceward, options);
  return async (request) => {
    const { pathname, search } = new URL(request.url);
    const guarded = {
      native: request,
      method: request.method,
      route: pathname,
      path: pathname,
      query: search,
      key: request.headers.get(IDEMPOTENCY_KEY) ?? undefined,
      body: async () => new Uint8Array(await request.clone().arrayBuffer()),
    };
    const answer = await guard(guarded, (claim) =>
      handleFetch(request, async () => await handler(request, claim)),
    );
    switch (answer.kind) {
      case "unguarded":
        return await handler(request, answer.claim);
      case "handled":
        return answer.sent;
      case "answered":
        return toResponse(answer.response);
      case "gone":
        return goneResponse();
    }
  };
}
