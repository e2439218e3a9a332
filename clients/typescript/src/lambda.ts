/** `@onceward/client/lambda`: handlers of AWS Lambda, and partial answers to batches of SQS. Needs no package of AWS. */

import { type LambdaContext, type LambdaRunner, untilTimeout } from "./consumers/lambda-timeout.ts";
import { checkFunction } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Jsonify } from "./run/jsonify.ts";
import type { NamespaceDefaults } from "./run/namespace.ts";
import { checkNamespaceOptions } from "./run/run-options.ts";

export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
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
 * `claim.signal` aborts: a function that then throws releases its claim, and so does a run that has not begun, before the
 * handler settles. One that Lambda stops keeps the claim until its
 * lease expires, and the namespace's policy applies. For an API Gateway or a function URL, use `@onceward/client/http`
 * behind a framework's adapter; for SQS, `sqsBatchOnce`.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options. The handler rejects with the errors of `Onceward.run`, and
 *   Lambda repeats an asynchronous invocation that rejects.
 */
export function lambdaOnce<Event, Value, Context extends LambdaContext = LambdaContext>(
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
    untilTimeout(onceward, context, (signal) =>
      onceward.run(
        {
          ...shared,
          key: key(event),
          fingerprint: fingerprint?.(event),
          keyCreatedAt: keyCreatedAt?.(event),
          signal,
        },
        async (claim) => await fn(event, context, claim),
      ),
    );
}
