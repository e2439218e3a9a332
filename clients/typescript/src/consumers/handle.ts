import {
  CompletionError,
  isAbout,
  OncewardError,
  ResultUnavailableError,
  TerminalError,
} from "../errors/errors.ts";
import type { Claim } from "../run/claim.ts";
import type { Runner } from "../run/client.ts";
import type { Jsonify } from "../run/jsonify.ts";
import { checkRunOptions, type RunOptions } from "../run/run-options.ts";
import { type Delivery, warnOfTrouble } from "./delivery.ts";
import { DeliveryIdWarning } from "./key.ts";
import { type ConsumerOptions, DEFAULT_REDELIVER_AFTER_MS } from "./options.ts";

/** How an adapter reads its broker's messages. */
export interface Source<Message> {
  /** Returns the key that `withKey` set; undefined if there is none. */
  readonly keyOf: (message: Message) => string | undefined;
  /** Returns the broker's ids of this delivery, which a `key` option should not use as the operation's key. */
  readonly deliveryIdsOf: (message: Message) => readonly (string | undefined)[];
}

/** The value after its JSON form was read; the function's own value if it could not be stored. */
export type HandledValue<Value> = Jsonify<Value> | Value;

/**
 * Returns a function that handles one delivery and resolves with its outcome; it never rejects.
 *
 * By default (`waitMs`), does not wait for another holder: the consumer has other messages to handle. `signal` is that of
 * `RunOptions`; if it aborts with an OncewardError before the function runs, the delivery is postponed.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options, before the first message.
 */
export function createHandler<Message, Value>(
  onceward: Runner,
  options: ConsumerOptions<Message>,
  { keyOf, deliveryIdsOf }: Source<Message>,
  fn: (message: Message, claim: Claim) => Value | Promise<Value>,
): (message: Message, options?: Pick<RunOptions, "signal">) => Promise<Delivery<HandledValue<Value>>> {
  const { namespace, waitMs = 0, leaseMs, timeoutMs, owner, classifyError } = options;
  const common = { namespace, waitMs, leaseMs, timeoutMs, owner, classifyError };
  checkRunOptions({ ...common, key: "any" });
  const { redeliverAfterMs = DEFAULT_REDELIVER_AFTER_MS, onDelivery = warnOfTrouble } = options;
  const warning = new DeliveryIdWarning();

  async function deliver(message: Message, signal?: AbortSignal): Promise<Delivery<HandledValue<Value>>> {
    const named = nameOf(message, options.key ?? keyOf, options.fingerprint);
    if (named instanceof OncewardError) return { kind: "refused", key: undefined, error: named };
    const { key } = named;
    warning.check(key, deliveryIdsOf(message));
    let claim: Claim | undefined;
    try {
      const result = await onceward.runDetailed({ ...common, ...named, signal }, (held) => {
        claim = held;
        return fn(message, held);
      });
      return result.replayed
        ? { kind: "duplicate", key, value: result.value, error: undefined }
        : { kind: "processed", key, value: result.value, attempt: result.attempt };
    } catch (error) {
      return claim === undefined
        ? withoutRunning(key, error, redeliverAfterMs)
        : afterRunning(claim, error, redeliverAfterMs);
    }
  }

  return async (message, { signal } = {}) => {
    const delivery = await deliver(message, signal);
    onDelivery(delivery);
    return delivery;
  };
}

function nameOf<Message>(
  message: Message,
  keyOf: (message: Message) => string | undefined,
  fingerprintOf: ((message: Message) => unknown) | undefined,
): { key: string; fingerprint: unknown } | OncewardError {
  try {
    const key = keyOf(message);
    if (key === undefined) return new OncewardError("INVALID_REQUEST", "The message has no operation key.");
    return { key, fingerprint: fingerprintOf?.(message) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : `${cause}`;
    return new OncewardError("INVALID_REQUEST", `The message's key can't be read: ${why}`, { cause });
  }
}

/**
 * Returns the outcome if the function was not called: the operation is settled, held by another, or can't be claimed.
 */
function withoutRunning(key: string, error: unknown, redeliverAfterMs: number): Delivery<never> {
  if (error instanceof TerminalError) return { kind: "duplicate", key, value: undefined, error };
  if (!(error instanceof OncewardError)) return { kind: "released", key, error };
  if (error instanceof ResultUnavailableError) {
    return { kind: "duplicate", key, value: undefined, error: undefined };
  }
  if (isAboutMessage(error)) return { kind: "refused", key, error };
  return postponed(key, error, redeliverAfterMs);
}

/** Returns the outcome if the function was called. A CompletionError of a nested run says nothing about this claim. */
function afterRunning<Value>(claim: Claim, error: unknown, redeliverAfterMs: number): Delivery<Value> {
  const { key, attempt } = claim;
  if (error instanceof TerminalError) return { kind: "failed", key, error };
  if (!(error instanceof CompletionError && isAbout(error, claim))) return { kind: "released", key, error };
  const { effect, stored } = error;
  // Stored without its value, but as done: the broker needs no more.
  if (!stored) return postponed(key, error, redeliverAfterMs);
  return effect.status === "fulfilled"
    ? { kind: "processed", key, attempt, value: effect.value as Value }
    : { kind: "failed", key, error: effect.reason };
}

function postponed(key: string, error: OncewardError, redeliverAfterMs: number): Delivery<never> {
  return { kind: "postponed", key, error, delayMs: Math.max(redeliverAfterMs, error.retryDelayMs ?? 0) };
}

/** Returns whether the message itself is invalid, not the consumer's settings, so that no delay would help. */
function isAboutMessage({ reason, violations }: OncewardError): boolean {
  if (reason === "FINGERPRINT_MISMATCH") return true;
  const fields = new Set(violations.map(({ field }) => field));
  return reason === "INVALID_REQUEST" && (fields.has("key") || fields.has("fingerprint"));
}
