import {
  type CallHandler,
  createParamDecorator,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  RequestTimeoutException,
  type Type,
  UseInterceptors,
} from "@nestjs/common";
import { type Observable, of, tap } from "rxjs";
import { sendFinal } from "../http/final-response.ts";
import { createGuard, type Guard, type NotHandled } from "../http/guard.ts";
import { HeldResponse } from "../http/held-response.ts";
import type { HttpOptions } from "../http/options.ts";
import type { Claim } from "../run/claim.ts";
import { Onceward } from "../run/client.ts";
import { bindScope } from "../run/current-claim.ts";
import { HTTP_DEFAULTS } from "./module.ts";
import { type Exchange, exchangeOf, type NestRequest } from "./platform.ts";

/** The options of a guarded route: those of `HttpOptions` that the module's `http` does not have. */
export type IdempotentOptions<Request> = Partial<HttpOptions<Request>>;

/**
 * Guards a route, or every route of a controller: one effect and one answer for all requests with one
 * Idempotency-Key, with the guarantees of `idempotent` in `@onceward/client/http`.
 *
 * ```ts
 * @Controller("charges")
 * export class ChargesController {
 *   @Post()
 *   @Idempotent({ namespace: "charges", caller: (request: Request) => request.user.id })
 *   async charge(@Body() order: Order, @CurrentClaim() claim: Claim | undefined) {
 *     return await this.provider.charge(order, { idempotencyKey: claim?.deriveKey("provider") });
 *   }
 * }
 * ```
 *
 * - Options of the module (`http`) apply to every route; a route's own options replace them.
 * - The key counts per caller, method and route (`/charges/:id/refunds`). The fingerprint is of the parsed body.
 * - The answer is stored as it is written: with what interceptors map, exception filters answer, `@Res()` gets and a
 *   `StreamableFile` contains. Nothing is sent before it is stored, or `answerAfterMs` have passed. After an OutcomeUnknownError, the
 *   client gets 409 `ambiguous` instead, and the claim is left to the namespace's policy. An interceptor after this one must pass the
 *   error on, or throw another one with it as its `cause`.
 * - Nest runs guards before the claim, and pipes after it: a request that a pipe refuses with 400 keeps that answer
 *   under its key. `stores` changes this.
 * - A replay runs neither pipes nor the handler. Interceptors before this one get the value `undefined`, and what they
 *   make of it is not sent.
 * - Until the response is whole, the handler does not see that its client has disconnected.
 *
 * @throws InvalidRequestError when the application starts, for an invalid option. A handler that does not belong to a route of
 *   HTTP fails with a TypeError, and does not run.
 */
export function Idempotent<Request extends object = NestRequest>(
  options: IdempotentOptions<Request>,
): MethodDecorator & ClassDecorator {
  return UseInterceptors(IdempotencyInterceptor(options));
}

/**
 * Returns the class of the interceptor that `@Idempotent` uses, for `@UseInterceptors` and for `APP_INTERCEPTOR`, which
 * guards every route of an application.
 */
export function IdempotencyInterceptor<Request extends object = NestRequest>(
  options: IdempotentOptions<Request>,
): Type<NestInterceptor> {
  class OncewardInterceptor implements NestInterceptor {
    readonly #guard: Guard<Request>;

    constructor(onceward: Onceward, defaults: Partial<HttpOptions<Request>>) {
      // The guard checks that none is missing.
      this.#guard = createGuard(onceward, { ...defaults, ...options } as HttpOptions<Request>);
    }

    async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
      const exchange = exchangeOf<Request>(context);
      const begun = await begin(this.#guard, exchange);
      switch (begun.kind) {
        case "claimed":
          claims.set(exchange.guarded.native, begun.claim);
          // Exception filters answer errors after the interceptors.
          return begun
            .within(() => next.handle())
            .pipe(tap({ error: (error) => begun.held.noteError(causeOf(error)) }));
        case "unguarded":
          if (begun.claim !== undefined) claims.set(exchange.guarded.native, begun.claim);
          return next.handle();
        case "answered": {
          const { response } = begun;
          const headers = { ...exchange.pendingHeaders(), ...response.headers };
          sendFinal(exchange.response, { ...response, headers });
          return of(undefined);
        }
      }
    }
  }
  // By hand, because the package is compiled without decorators and their metadata.
  Inject(Onceward)(OncewardInterceptor, undefined, 0);
  Inject(HTTP_DEFAULTS)(OncewardInterceptor, undefined, 1);
  Injectable()(OncewardInterceptor);
  return OncewardInterceptor as Type<NestInterceptor>;
}

/** Returns the error by which a claim is judged: Nest's interceptors throw this one while the handler still runs. */
function causeOf(error: unknown): unknown {
  return error instanceof RequestTimeoutException ? new DOMException(error.message, "TimeoutError") : error;
}

/** The claims under which the handlers of requests run. */
const claims = new WeakMap<object, Claim>();

/**
 * The decorator of a handler's parameter that gets the claim: `@CurrentClaim() claim: Claim | undefined`. It is
 * undefined for a request that is not guarded.
 */
export const CurrentClaim: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext) => claims.get(context.switchToHttp().getRequest<object>()),
);

/** A request whose handler must be called, and its response, which is held. */
interface Claimed {
  readonly kind: "claimed";
  readonly claim: Claim;
  readonly held: HeldResponse;
  /** Nest calls the handler in the context in which `next.handle` is called. */
  readonly within: ReturnType<typeof bindScope>;
}

/** Resolves as soon as it is known whether the handler must be called; its response is sent once it is stored. */
function begin<Request extends object>(
  guard: Guard<Request>,
  { guarded, incoming, response, pendingHeaders }: Exchange<Request>,
): Promise<Claimed | NotHandled> {
  return new Promise((decide, refuse) => {
    let claimed: (Claimed & { readonly headers: Readonly<Record<string, string>> }) | undefined;
    const answered = guard(guarded, (claim) => {
      const held = new HeldResponse(incoming, response);
      claimed = { kind: "claimed", claim, held, within: bindScope(), headers: pendingHeaders() };
      decide(claimed);
      return held;
    });
    answered
      .then((answer) => {
        switch (answer.kind) {
          case "handled":
            return answer.sent.send();
          case "gone":
            return;
          case "answered": {
            if (claimed === undefined) return decide(answer);
            const { held, headers } = claimed;
            return held.replace({ ...answer.response, headers: { ...headers, ...answer.response.headers } });
          }
          case "unguarded":
            return decide(answer);
        }
      })
      .catch(refuse);
  });
}
