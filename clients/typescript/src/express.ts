/** `@onceward/client/express`: the Idempotency-Key header as a middleware of Express 4 and 5. */

import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import { seeErrorsOfRoutes } from "./http/express-routes.ts";
import { createGuard } from "./http/guard.ts";
import { HeldResponse } from "./http/held-response.ts";
import { parsedBody, splitTarget } from "./http/node-request.ts";
import type { HttpOptions } from "./http/options.ts";
import type { WholeResponse } from "./http/whole-response.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

/** The middleware's locals: `res.locals.claim`, undefined for a request that is not guarded. */
export interface IdempotencyLocals {
  claim?: Claim;
}

/**
 * The middleware. The handlers after it in one `app.post(…)` or `router.post(…)` get its locals by inference; annotate others'
 * response as `Response<unknown, IdempotencyLocals>`.
 */
export type IdempotencyHandler = RequestHandler<
  Request["params"],
  Request["body"],
  Request["body"],
  Request["query"],
  // Other middleware has locals of its own.
  IdempotencyLocals & Response["locals"]
>;

/**
 * Returns a middleware that guards the handlers after it: one effect and one answer for all requests with one
 * Idempotency-Key, with the guarantees of `idempotent` in `@onceward/client/http`. Put it after authentication, body
 * parsers and validation.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotency } from "@onceward/client/express";
 * import express from "express";
 *
 * // What your authentication sets.
 * declare global {
 *   namespace Express {
 *     interface Request {
 *       account: { id: string };
 *     }
 *   }
 * }
 *
 * const onceward = createOnceward({ address: "http://localhost:50051", apiKey: process.env.ONCEWARD_API_KEY });
 * const once = idempotency(onceward, { namespace: "charges", caller: (req) => req.account.id });
 *
 * const app = express();
 * app.use(express.json());
 * app.post("/charges", once, async (req, res) => {
 *   const { claim } = res.locals;
 *   res.status(201).json(await provider.charge(req.body, { idempotencyKey: claim?.deriveKey("provider") }));
 * });
 * ```
 *
 * - The key counts per caller, method and route: `/charges/:id/refunds` if the middleware belongs to the route, as
 *   above; the path if `app.use` mounts it.
 * - The fingerprint is of the body parser's result: JSON and `express.urlencoded` by value, and the bytes of `express.raw`. Without a
 *   `fingerprint` option, a body that was not parsed is an error, and so is a multipart form, whose parser keeps the files elsewhere.
 * - If a handler throws or calls `next` with an error, the error handler's response counts as its response. After an
 *   OutcomeUnknownError of a route's handler, the client gets 409 `ambiguous` instead, and the claim is left to the namespace's
 *   policy. {@link noteUnknownOutcome} does so for other handlers.
 * - Until the response is whole, the handler does not see that its client has disconnected: `res` stays writable,
 *   `close` is emitted later, and a file or a pipeline is written to its end. Always end the response: after a
 *   disconnect, its claim is kept for `abandonAfterMs`.
 * - A second guard of the same namespace lets a guarded request pass.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function idempotency(onceward: Runner, options: HttpOptions<Request>): IdempotencyHandler {
  const guard = createGuard(onceward, options);
  return async (req, res, next) => {
    const { path, query } = splitTarget(req.originalUrl);
    const guarded = {
      native: req,
      method: req.method,
      route: typeof req.route?.path === "string" ? req.baseUrl + req.route.path : path,
      path,
      query,
      header: (name: string) => req.get(name),
      body: () => parsedBody(req, req.body),
      setHeader: (name: string, value: string) => void res.setHeader(name, value),
    };
    let held: HeldResponse | undefined;
    try {
      const answer = await guard(guarded, (claim) => {
        res.locals.claim = claim;
        held = new HeldResponse(req, res);
        // A request may have guards of several namespaces.
        heldOf.set(req, [...(heldOf.get(req) ?? []), held]);
        seeErrorsOfRoutes(req, noteUnknownOutcome);
        next();
        return held;
      });
      switch (answer.kind) {
        case "unguarded":
          return next();
        case "handled":
          return answer.sent.send();
        case "answered":
          if (held !== undefined) return held.replace(answer.response);
          return send(res, answer.response);
        case "gone":
          return;
      }
    } catch (error) {
      next(error);
    }
  };
}

/** The held responses of a request. */
const heldOf = new WeakMap<Request, readonly HeldResponse[]>();

/**
 * An error handler that notes for the guard that the outcome is unknown (OutcomeUnknownError), and passes the error on. The guard
 * adds it to the end of each route that a guarded request reaches. Add it yourself where an error handler that answers comes earlier,
 * and after a handler that has no route:
 *
 * ```ts
 * app.post("/charges", once, charge, noteUnknownOutcome, answerError);
 * app.use("/refunds", once, refund, noteUnknownOutcome);
 * ```
 *
 * Without it, the guard sees only the answer to the error: a 5xx releases the claim, and the next request has the effect again.
 */
export const noteUnknownOutcome: ErrorRequestHandler = (error, req, _res, next) => {
  for (const held of heldOf.get(req) ?? []) held.noteError(error);
  next(error);
};

function send(res: Response, { status, headers, body }: WholeResponse): void {
  res.status(status);
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end(body);
}
