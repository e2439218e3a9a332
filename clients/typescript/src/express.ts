/** `@onceward/client/express`: the Idempotency-Key header as a middleware of Express 5. */

import type { Request, RequestHandler, Response } from "express";
import type { Claim } from "./held-claim.ts";
import { createGuard, ResponseCut } from "./http/guard.ts";
import { HeldResponse } from "./http/held-response.ts";
import type { HttpOptions } from "./http/options.ts";
import { splitTarget } from "./http/request-target.ts";
import type { WholeResponse } from "./http/whole-response.ts";
import { IDEMPOTENCY_KEY } from "./idempotency-key.ts";
import type { Runner } from "./runner.ts";

/** What the middleware sets: `res.locals.claim`, undefined for a request that is not guarded. */
export interface IdempotencyLocals {
  claim?: Claim;
}

/**
 * A middleware that guards the handlers after it: one effect and one answer for all requests with one Idempotency-Key,
 * with the promises of `idempotent` in `@onceward/client/http`. Put it after authentication, body parsers and validation.
 *
 * ```ts
 * import { createOnceward } from "@onceward/client";
 * import { idempotency } from "@onceward/client/express";
 * import express from "express";
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
 * - The key counts per caller, method and route: `/charges/:id/refunds` where the middleware is the route's own, as
 *   above; the path where `app.use` mounts it.
 * - The fingerprint is of what the body parser made of the body: JSON by value, whatever the order of its members, bytes
 *   of `express.raw` as they are. A request whose body nobody parsed is an error: it would pass for any other. A parser
 *   that keeps files elsewhere (multipart) needs `fingerprint`.
 * - An error that a handler throws or hands to `next` becomes a response of the error handler, and counts as one.
 * - Always end the response: as long as a handler may still do so, its claim is kept.
 *
 * @throws TypeError for an option that can't be meant.
 */
export function idempotency(onceward: Runner, options: HttpOptions<Request>): RequestHandler {
  const guard = createGuard(onceward, options);
  return async (req, res, next) => {
    const { path, query } = splitTarget(req.originalUrl);
    const guarded = {
      native: req,
      method: req.method,
      route: typeof req.route?.path === "string" ? req.baseUrl + req.route.path : path,
      path,
      query,
      key: req.get(IDEMPOTENCY_KEY),
      body: () => parsedBody(req),
    };
    try {
      const answer = await guard(guarded, (claim) => {
        res.locals.claim = claim;
        const held = new HeldResponse(res);
        next();
        return held.handled;
      });
      switch (answer.kind) {
        case "unguarded":
          return next();
        case "handled":
          return answer.sent.send();
        case "answered":
          return send(res, answer.response);
      }
    } catch (error) {
      // A response that was cut has no more to say to anybody.
      if (!(error instanceof ResponseCut)) next(error);
    }
  };
}

function parsedBody(req: Request): unknown {
  const sent = req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"]) > 0;
  if (req.body === undefined && sent) {
    throw new Error(
      "idempotency() comes after a body parser for this content type, or needs a fingerprint option",
    );
  }
  return req.body;
}

function send(res: Response, { status, headers, body }: WholeResponse): void {
  res.status(status);
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end(body);
}
