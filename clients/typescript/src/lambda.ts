/** `@onceward/client/lambda`: handlers of AWS Lambda, and partial answers to batches of SQS. Needs no package of AWS. */

import { type AnyContext, runDurably } from "./consumers/durable.ts";
import { type LambdaContext, type LambdaRunner, untilTimeout } from "./consumers/lambda-timeout.ts";
import { checkFunction } from "./errors/violations.ts";
import { createGuard } from "./http/guard.ts";
import {
  type HttpEvent,
  type HttpResult,
  handledOf,
  requestOf,
  resultOf,
  withHeaders,
} from "./http/lambda-http.ts";
import type { HttpOptions } from "./http/options.ts";
import type { Claim } from "./run/claim.ts";
import type { Jsonify } from "./run/jsonify.ts";
import type { NamespaceDefaults } from "./run/namespace.ts";
import { checkNamespaceOptions } from "./run/run-options.ts";

export type { ConcurrencyOptions } from "./consumers/concurrency.ts";
export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export type { AnyContext, DurableContext } from "./consumers/durable.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { LambdaContext, LambdaRunner } from "./consumers/lambda-timeout.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";
export {
  type SqsBatchOptions,
  type SqsBatchResponse,
  type SqsEvent,
  type SqsRecord,
  sqsBatchOnce,
} from "./consumers/sqs-batch.ts";
export type { HttpEvent, HttpEventV1, HttpEventV2, HttpResult } from "./http/lambda-http.ts";

/** How a handler names its operations and runs them. */
export interface LambdaOptions<Event> extends NamespaceDefaults {
  /** The group of operations that share a policy, such as "charges". */
  readonly namespace: string;
  /**
   * Returns the operation's key, as the event's producer made it: never the invocation's `awsRequestId`, which a repeat
   * by the producer does not share.
   */
  readonly key: (event: Event) => string;
  /** Returns what the key belongs to, as `RunOptions.fingerprint` describes it. Default: not compared. */
  readonly fingerprint?: ((event: Event) => unknown) | undefined;
  /** Returns when the key was made, as `RunOptions.keyCreatedAt` describes it. Default: the time in the key, if any. */
  readonly keyCreatedAt?: ((event: Event) => Date | undefined) | undefined;
}

/**
 * Returns a Lambda handler that runs the function once per key of the event; every repeat gets the stored value, as JSON.
 *
 * ```ts
 * export const handler = lambdaOnce(
 *   onceward,
 *   { namespace: "charges", key: (order: Order) => order.id, fingerprint: (order) => order },
 *   (order, context, claim) => provider.charge(order, { idempotencyKey: claim.deriveKey("provider") }),
 * );
 * ```
 *
 * Half a second before the invocation's timeout, waits for another holder and for the service end with ABORTED, and
 * `claim.signal` aborts: the claim of a function that then throws is left to the namespace's policy, unless it throws a NoEffectError; a
 * run that has not begun releases its claim, before the handler settles. One that Lambda stops keeps the claim until its
 * lease expires, and the namespace's policy applies. For HTTP, use `lambdaHttpOnce`; for SQS, `sqsBatchOnce`.
 *
 * In a durable execution (inside `withDurableExecution`), each replay of the execution continues its own claim, also after the
 * lease has expired during a suspension, under the policy HOLD; another execution with the key is a duplicate. Under RECLAIM,
 * another execution may take over during a suspension that outlasts the lease: use HOLD, or `leaseMs`.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options. The handler rejects with the errors of `Onceward.run`, and
 *   Lambda repeats an asynchronous invocation that rejects.
 */
export function lambdaOnce<Event, Value, Context extends AnyContext = LambdaContext>(
  onceward: LambdaRunner,
  options: LambdaOptions<Event>,
  fn: (event: Event, context: Context, claim: Claim) => Value | Promise<Value>,
): (event: Event, context: Context) => Promise<Jsonify<Value>> {
  checkFunction("fn", fn);
  const { key, fingerprint, keyCreatedAt, ...shared } = options;
  checkFunction("key", key);
  for (const [name, fnOfEvent] of Object.entries({ fingerprint, keyCreatedAt })) {
    if (fnOfEvent !== undefined) checkFunction(name, fnOfEvent);
  }
  checkNamespaceOptions(shared);
  return (event, context) =>
    runDurably(onceward, context, (attempt) => {
      const keyOptions = {
        key: key(event),
        fingerprint: fingerprint?.(event),
        keyCreatedAt: keyCreatedAt?.(event),
      };
      return onceward.run(
        { ...shared, ...keyOptions, ...attempt },
        async (claim) => await fn(event, context, claim),
      );
    });
}

/**
 * Returns a Lambda handler of HTTP requests, guarded as `idempotent` of `@onceward/client/http` guards: events of API Gateway
 * (payload 1.0 and 2.0), an Application Load Balancer and function URLs.
 *
 * ```ts
 * export const handler = lambdaHttpOnce(
 *   onceward,
 *   { namespace: "charges", caller: (event: APIGatewayProxyEventV2WithIAMAuthorizer) => event.requestContext.authorizer.iam.accountId },
 *   async (event, context, claim) => {
 *     const charge = await provider.charge(event.body, { idempotencyKey: claim?.deriveKey("provider") });
 *     return { statusCode: 201, headers: { "content-type": "application/json" }, body: JSON.stringify(charge) };
 *   },
 * );
 * ```
 *
 * - The key counts per caller, method and route, such as `/charges/{id}`; the path for `$default` and `{proxy+}`.
 * - The function returns an object with a `statusCode`. The first client gets it unchanged, with its cookies.
 * - Half a second before the invocation's timeout, a request that waits is answered with 503.
 *
 * @throws InvalidRequestError for an invalid option. The handler rejects with the function's error.
 */
export function lambdaHttpOnce<Event extends HttpEvent, Context extends LambdaContext = LambdaContext>(
  onceward: LambdaRunner,
  options: HttpOptions<Event>,
  fn: (event: Event, context: Context, claim: Claim | undefined) => HttpResult | Promise<HttpResult>,
): (event: Event, context: Context) => Promise<HttpResult> {
  checkFunction("fn", fn);
  const guard = createGuard(onceward, options);
  return (event, context) =>
    untilTimeout(onceward, context, async (signal) => {
      const ours: Record<string, string> = {};
      const answer = await guard(requestOf(event, ours, signal), (claim) => ({
        handled: (async () => handledOf(await fn(event, context, claim)))(),
        // A function does not see its client.
        disconnected: new AbortController().signal,
        abandon: () => {},
      }));
      switch (answer.kind) {
        case "unguarded":
          return await fn(event, context, answer.claim);
        case "handled":
          return withHeaders(event, ours, answer.sent);
        case "answered":
          return withHeaders(event, ours, resultOf(event, answer.response));
        case "gone":
          return { statusCode: 503 };
      }
    });
}
