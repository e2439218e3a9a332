import { DelayedError, type Job, type Processor, UnrecoverableError } from "bullmq";
import { createHandler, type HandledValue } from "./consumers/handle.ts";
import { checkedKey } from "./consumers/key.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { Delivery } from "./consumers/delivery.ts";
export type { ConsumerOptions } from "./consumers/options.ts";

/** The field of a job's data that carries the operation's key. */
export const KEY_FIELD = "idempotencyKey";

/**
 * Returns a processor that performs each operation once, however often its job is added, retried or found stalled.
 *
 * ```ts
 * await queue.add("charge", withKey(order.id, { order }), { attempts: 10, backoff: { type: "exponential", delay: 1000 } });
 *
 * const processor = jobOnce(onceward, { namespace: "charges" }, async (job: Job<{ order: Order }>, claim) =>
 *   provider.charge(job.data.order, { idempotencyKey: claim.deriveKey("provider") }),
 * );
 * new Worker("charges", processor, { connection });
 * ```
 *
 * - The key is the data's field `idempotencyKey`, set when the job is added. The function's value is stored, and
 *   returned for every duplicate.
 * - A key that contains no time has the job's `timestamp`: when it was added, also if it is delayed or retried by hand. A job that
 *   is added again has a later one.
 * - While another holder runs the operation, the service is unreachable, or the record is ambiguous, the job is
 *   delayed by `redeliverAfterMs`, which counts no attempt.
 * - An error of the function is rethrown, for BullMQ to retry by the job's `attempts` and `backoff`, until `maxAttempts`
 *   is reached.
 * - A TerminalError is stored, and fails this job and every duplicate at once, as an UnrecoverableError. A job that
 *   can't be claimed (no key, the key of another request, a key that is too old) fails in the same way. BullMQ keeps failed jobs, unless
 *   `removeOnFail` says otherwise.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function jobOnce<Data, Result>(
  onceward: Runner,
  options: Omit<ConsumerOptions<Job<Data>>, "maxRedeliverAfterMs">,
  fn: (job: Job<Data>, claim: Claim) => Result | Promise<Result>,
): Processor<Data, HandledValue<Result> | undefined> {
  const timed = withMessageTime(options, ({ timestamp }: Job) => timestamp);
  const handle = createHandler(onceward, timed, keyOf, fn);
  return async (job, token) => {
    const delivery = await handle(job);
    switch (delivery.kind) {
      case "processed":
        return delivery.value;
      case "duplicate":
        if (delivery.error !== undefined) throw new UnrecoverableError(delivery.error.message);
        return delivery.value;
      case "failed":
      case "refused":
        throw new UnrecoverableError(delivery.error.message);
      case "released":
        throw delivery.error;
      case "postponed":
        await job.moveToDelayed(Date.now() + delivery.delayMs, token);
        throw new DelayedError();
      default:
        return delivery satisfies never;
    }
  };
}

/**
 * Returns a job's data with its operation's key, for the producer. @throws OncewardError INVALID_REQUEST for an
 * invalid key.
 */
export function withKey<Data extends object>(
  key: string,
  data: Data,
): Data & { readonly [KEY_FIELD]: string } {
  return { ...data, [KEY_FIELD]: checkedKey(key) };
}

function keyOf({ data }: Job): string | undefined {
  return data?.[KEY_FIELD];
}
