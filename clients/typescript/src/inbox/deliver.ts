import { Buffer } from "node:buffer";
import { fromBinary } from "@bufbuild/protobuf";
import type { OncewardError, Reason } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import { factsOf } from "../errors/reasons.ts";
import { ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import type { Calls } from "../run/calls.ts";
import type { Onceward } from "../run/onceward.ts";
import { encodeWithoutValue } from "../run/result-codec.ts";
import type { CompletedClaim } from "./complete-in.ts";
import type { Executor } from "./executor.ts";

/** Few enough that the service answers all of them before another relay takes the same rows. */
const BATCH_ROWS = 100;

/** A completion that the service will never accept. Its row stays, with the reason. */
export interface UndeliverableCompletion extends CompletedClaim {
  /**
   * - `CLAIM_SUPERSEDED`, `ALREADY_RELEASED`: the lease expired, or the run failed after its commit, before the
   *   completion was delivered. The next attempt that reaches `completeIn` takes the value over, and delivers it.
   * - `ALREADY_COMPLETED`: the function passed to `run` returned another value than `completeIn` did.
   * - `RECORD_NOT_FOUND`: the key was forgotten before.
   * - `INVALID_REQUEST`: the run was not guarded (`onUnavailable` "proceed"), so that there is no claim to complete;
   *   the next attempt takes the value over, too. Or the row was changed.
   */
  readonly reason: Reason;
}

/** The options of a delivery. */
export interface DeliverOptions {
  /** The client that sends the completions. */
  readonly onceward: Pick<Onceward, "calls">;
  /** The database with the completions: a pool, not a transaction, because each statement commits separately. */
  readonly database: Executor;
  /** Called once for each completion that the service will never accept; from then on its row has the reason. Default: none. */
  readonly onUndeliverable?: ((completion: UndeliverableCompletion) => void) | undefined;
  /** Called with a temporary error, once per pass; the delivery is retried. Default: none. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The outcomes of the completions in one pass. */
export interface DeliveryCounts {
  readonly delivered: number;
  readonly undeliverable: number;
  /** Will be retried. */
  readonly failed: number;
}

/**
 * Delivers up to 100 due completions: one pass of a relay. A scheduled job may call it instead of `startRelay`.
 *
 * A row that a pass takes is due again after 10 s, then after growing delays of up to a minute. So concurrent passes
 * share the rows, and a pass that dies leaves nothing to clean up. A completion that is delivered twice counts once
 * at the service.
 *
 * @throws the driver's errors. The service's errors are counted and reported.
 */
export async function deliverCompletions(options: DeliverOptions): Promise<DeliveryCounts> {
  const { onceward, database, onUndeliverable, onError } = options;
  const taken = await takeDue(database);
  const deliveries = await Promise.all(taken.map((completion) => deliver(onceward, completion)));
  const settled = deliveries.filter((delivery) => delivery.kind !== "failed");
  if (settled.length > 0) await markDelivered(database, settled);

  const undeliverable = settled.filter((delivery) => delivery.kind === "undeliverable");
  for (const { completion, reason } of undeliverable) {
    const { namespace, key, fencingToken } = completion;
    onUndeliverable?.({ namespace, key, fencingToken, reason });
  }
  const failed = deliveries.filter((delivery) => delivery.kind === "failed");
  if (failed[0] !== undefined) onError?.(failed[0].error);
  return {
    delivered: settled.length - undeliverable.length,
    undeliverable: undeliverable.length,
    failed: failed.length,
  };
}

interface Completion extends CompletedClaim {
  /** An onceward.v1.Result in base64. Each is parsed separately, so that a corrupted row fails alone. */
  readonly result: string;
}

async function takeDue(database: Executor): Promise<Completion[]> {
  const rows = await database(
    `with due as materialized (
       select namespace, key
         from onceward_completions
        where delivered_at is null and undeliverable is null and next_attempt_at <= now()
        order by next_attempt_at
        limit $1::text::int
          for update skip locked
     )
     update onceward_completions c set
       attempts = c.attempts + 1,
       next_attempt_at = now() + least(60, 10 * 2 ^ least(c.attempts, 10)) * interval '1 second'
     from due
     where c.namespace = due.namespace and c.key = due.key
     returning c.namespace, c.key, c.fencing_token::text as token, encode(c.result, 'base64') as result`,
    [String(BATCH_ROWS)],
  );
  return rows.map(({ namespace, key, token, result }) => ({
    namespace: namespace ?? "",
    key: key ?? "",
    fencingToken: BigInt(token ?? 0),
    result: result ?? "",
  }));
}

type Delivery = { readonly completion: Completion } & (
  | { readonly kind: "delivered" }
  | { readonly kind: "undeliverable"; readonly reason: Reason }
  | { readonly kind: "failed"; readonly error: OncewardError }
);

async function deliver({ calls }: Pick<Onceward, "calls">, completion: Completion): Promise<Delivery> {
  try {
    await complete(calls, completion);
    return { kind: "delivered", completion };
  } catch (cause) {
    const error = errorFromCall(cause);
    const { reason } = error;
    return reason === "INVALID_REQUEST" || factsOf(reason)?.claimIsOver
      ? { kind: "undeliverable", completion, reason }
      : { kind: "failed", completion, error };
  }
}

/**
 * Completes the claim at the service. A result that the service refuses is stored as done without its value, as in
 * `run`.
 */
async function complete(calls: Calls, completion: Completion): Promise<void> {
  const result = fromBinary(ResultSchema, Buffer.from(completion.result, "base64"));
  try {
    await calls.complete({ ...completion, result });
  } catch (cause) {
    const error = errorFromCall(cause);
    if (error.reason !== "RESULT_TOO_LARGE" && error.reason !== "INVALID_REQUEST") throw error;
    const withoutValue = encodeWithoutValue({ status: "fulfilled", value: undefined }, error);
    await calls.complete({ ...completion, result: withoutValue });
  }
}

async function markDelivered(database: Executor, deliveries: readonly Delivery[]): Promise<void> {
  const outcomes = deliveries.map((delivery) => ({
    namespace: delivery.completion.namespace,
    key: delivery.completion.key,
    token: String(delivery.completion.fencingToken),
    reason: delivery.kind === "undeliverable" ? delivery.reason : null,
  }));
  // Only rows that are unchanged: an attempt with a newer token may have taken a row over in the meantime.
  await database(
    `update onceward_completions c set
       delivered_at = case when o.reason is null then now() end,
       undeliverable = o.reason
     from json_to_recordset($1::text::json) as o (namespace text, key text, token bigint, reason text)
     where c.namespace = o.namespace and c.key = o.key and c.fencing_token = o.token`,
    [JSON.stringify(outcomes)],
  );
}
