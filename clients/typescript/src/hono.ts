/** `@onceward/client/hono`: the Idempotency-Key header as a middleware of Hono. */

import type { Context, MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import { goneResponse, handleFetch, toResponse } from "./http/fetch-response.ts";
import { createGuard } from "./http/guard.ts";
import type { HttpOptions } from "./http/options.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { isOutcomeUnknown } from "./run/outcome-unknown.ts";

/**
 * The middleware's variables: `c.var.claim`, undefined for a request that is not guarded. The handlers after it in one
 * `app.post(…)` get it by inference; name the type in `new Hono<{ Variables: IdempotencyVariables }>()` for others.
 */
export interface IdempotencyVariables {
  claim: Claim | undefined;
}

/**
 * Returns a middleware that guards the handlers after it: one effect and one answer for all requests with one
 * Idempotency-Key, with the guarantees of `idempotent` in `@onceward/client/http`. Put it after authentication and
 * validation, so that a request that they refuse claims no key.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotency } from "@onceward/client/hono";
 * import { Hono } from "hono";
 *
 * const onceward = createOnceward({ address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY });
 * const app = new Hono();
 *
 * app.post("/charges", idempotency(onceward, { namespace: "charges", caller: (c) => c.get("account") }), async (c) => {
 *   const charge = await provider.charge(await c.req.json(), { idempotencyKey: c.var.claim?.deriveKey("provider") });
 *   return c.json(charge, 201);
 * });
 * ```
 *
 * - The key counts per caller, method and route (`/charges/:id/refunds`).
 * - The fingerprint is of the body; the handler can still read `c.req.raw`. Put a validator of forms after
 *   the middleware; otherwise the fingerprint is of the form's fields and files.
 * - A client's disconnect does not stop the handler. A handler that has not answered `abandonAfterMs` after the
 *   disconnect (`c.req.raw.signal`) is abandoned.
 * - A second guard of the same namespace lets a guarded request pass.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function idempotency(
  onceward: Runner,
  options: HttpOptions<Context>,
): MiddlewareHandler<{ Variables: IdempotencyVariables }> {
  const guard = createGuard(onceward, options);
  return async (c, next) => {
    const { pathname, search } = new URL(c.req.url);
    const guarded = {
      native: c,
      method: c.req.method,
      // The last route is the handler's; the routes before it are middleware, which may match any path.
      route: matchedRoutes(c).at(-1)?.path ?? pathname,
      path: pathname,
      query: search,
      header: (name: string) => c.req.header(name),
      body: () => bodyOf(c),
      setHeader: (name: string, value: string) => c.res.headers.set(name, value),
    };
    const answer = await guard(guarded, (claim) => {
      const respond = async () => {
        c.set("claim", claim);
        await next();
        // The response is that of Hono's error handler; the claim must not be released for its status.
        if (isOutcomeUnknown(c.error)) throw c.error;
        return c.res;
      };
      return handleFetch(c.req.raw, respond, () => c.error);
    });
    switch (answer.kind) {
      case "unguarded":
        return await next();
      case "handled":
        c.res = answer.sent;
        return;
      case "answered": {
        const response = toResponse(answer.response);
        // Hono drops a returned response if its error handler has answered before.
        if (c.finalized) c.res = response;
        return response;
      }
      case "gone":
        // Replaces a response whose body is still being read.
        c.res = goneResponse();
        return;
    }
  };
}

/** Reads the body, and leaves `c.req.raw` to the handler. */
async function bodyOf({ req }: Context): Promise<unknown> {
  if (!req.raw.bodyUsed) return new Uint8Array(await req.raw.clone().arrayBuffer());
  // A validator has read the body. Hono keeps no bytes of a form, and would write different bytes for each request.
  return "formData" in req.bodyCache ? await req.formData() : new Uint8Array(await req.arrayBuffer());
}
