import {
  CompletionError,
  isAbout,
  OncewardError,
  ResultUnavailableError,
  TerminalError,
} from "../errors/errors.ts";
import { classOf } from "../errors/mapping.ts";
import { checkFunction, refusedField } from "../errors/violations.ts";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";
import { keyTime } from "../keys/key-time.ts";
import { type Claim, RecordedClaim, type RunningClaim } from "../run/claim.ts";
import type { Runner } from "../run/client.ts";
import { callHook, Warnings } from "../run/events.ts";
import type { Jsonify } from "../run/jsonify.ts";
import { judgeUnder, terminalFrom } from "../run/judgement.ts";
import { resolveFor } from "../run/resolution.ts";
import { checkRunOptions, type RunOptions } from "../run/run-options.ts";
import { type Delivery, warnOfTrouble } from "./delivery.ts";
import {
  backoffAfter,
  boundedDelayMs,
  type ConsumerOptions,
  type Redelivery,
  redeliveryOf,
} from "./options.ts";

/** The value after its JSON form was read; the function's own value if it could not be stored. */
export type HandledValue<Value> = Jsonify<Value> | Value;

/**
 * Returns a function that handles one delivery and resolves with its outcome; it never rejects. The operation is attempted
 * at most `maxAttempts` times.
 *
 * By default (`waitMs`), does not wait for another holder: the consumer has other messages to handle. `signal` is that of
 * `RunOptions`; if it aborts with an OncewardError before the function runs, the delivery is postponed.
 *
 * @param keyOf returns the key that `withKey` set; undefined if there is none.
 * @throws OncewardError INVALID_REQUEST for invalid options or without a function, before the first message.
 */
export function createHandler<Message, Value>(
  onceward: Runner,
  options: ConsumerOptions<Message>,
  keyOf: (message: Message) => string | undefined,
  fn: (message: Message, claim: Claim) => Value | Promise<Value>,
): (message: Message, options?: Pick<RunOptions, "signal">) => Promise<Delivery<HandledValue<Value>>> {
  const { namespace, mode, waitMs = 0, leaseMs, timeoutMs, owner, classifyError } = options;
  const { onError, marksBegin } = options;
  const common = { namespace, mode, waitMs, leaseMs, timeoutMs, owner, classifyError, onError, marksBegin };
  checkFunction("fn", fn);
  checkRunOptions({ ...common, key: "any", resolve: resolveFor({} as Message, options.resolve) });
  for (const name of ["key", "fingerprint", "keyCreatedAt", "onDelivery", "resolve"] as const) {
    if (options[name] !== undefined) checkFunction(name, options[name]);
  }
  const redelivery = redeliveryOf(options);
  const { onDelivery = warnOfTrouble } = options;
  const warnings = new Warnings();

  async function deliver(message: Message, signal?: AbortSignal): Promise<Delivery<HandledValue<Value>>> {
    const named = nameOf(message, { ...options, key: options.key ?? keyOf });
    if ("error" in named) return { kind: "refused", ...named };
    const { key } = named;
    let claim: Claim | undefined;
    try {
      const value = await onceward.run(
        { ...common, ...named, signal, resolve: resolveFor(message, options.resolve) },
        (held) => {
          claim = held;
          return attempt(held, redelivery, () => fn(message, held));
        },
      );
      // Without a call the operation was done before, also if only `resolve` found that out.
      return claim === undefined
        ? { kind: "duplicate", key, value, error: undefined }
        : { kind: "processed", key, value, attempt: claim.attempt };
    } catch (error) {
      return claim === undefined
        ? withoutRunning(key, error, redelivery, options.fingerprint !== undefined)
        : afterRunning(claim, error, redelivery);
    }
  }

  return async (message, { signal } = {}) => {
    const delivery = await deliver(message, signal);
    callHook("onDelivery", warnings, () => onDelivery(delivery));
    return delivery;
  };
}

/** As {@link createHandler}, for a function whose value is not kept: the broker needs none. */
export function createEffectHandler<Message>(
  onceward: Runner,
  options: ConsumerOptions<Message>,
  keyOf: (message: Message) => string | undefined,
  fn: (message: Message, claim: Claim) => unknown,
): (message: Message, options?: Pick<RunOptions, "signal">) => Promise<Delivery<void>> {
  checkFunction("fn", fn);
  return createHandler(onceward, options, keyOf, async (message, claim) => void (await fn(message, claim)));
}

/** Calls the function, unless all attempts have ended. An error on the last attempt is permanent. */
async function attempt<Value>(
  claim: Claim,
  { maxAttempts }: Redelivery,
  fn: () => Value | Promise<Value>,
): Promise<Value> {
  if (claim.attempt > maxAttempts) {
    throw new TerminalError(`${claim.attempt - 1} attempts ended without an outcome, and no other is made.`);
  }
  try {
    return await fn();
  } catch (error) {
    // A function that may have had its effect has not failed.
    if (claim.attempt < maxAttempts || judgeUnder(claim, error) !== "release") throw error;
    throw terminalFrom(error);
  }
}

type Name = Pick<RunOptions, "key" | "fingerprint" | "keyCreatedAt">;

/** Returns the names of a message's operation; if it can't be claimed, the error, and its key if that is known. */
function nameOf<Message>(
  message: Message,
  of: Pick<ConsumerOptions<Message>, "fingerprint" | "keyCreatedAt"> & {
    readonly key: (message: Message) => string | undefined;
  },
): Name | { readonly key: string | undefined; readonly error: OncewardError } {
  let key: string | undefined;
  let reads: "key" | "fingerprint" | "keyCreatedAt" = "key";
  try {
    key = of.key(message);
    if (key === undefined) {
      return { key, error: new OncewardError("INVALID_REQUEST", "The message has no operation key.") };
    }
    reads = "fingerprint";
    const fingerprint = of.fingerprint?.(message);
    reads = "keyCreatedAt";
    // The time in a key is the same in each message that has the key, also if the producer sends a second one.
    return { key, fingerprint, keyCreatedAt: keyTime(key) ? undefined : of.keyCreatedAt?.(message) };
  } catch (cause) {
    return { key, error: unreadable(reads, cause) };
  }
}

function unreadable(field: string, cause: unknown): OncewardError {
  const why = cause instanceof Error ? cause.message : `${cause}`;
  return refusedField(field, `of the message can't be read: ${why}`, cause);
}

/**
 * Returns the outcome if the function was not called: the operation is settled, held by another, or can't be claimed.
 */
function withoutRunning(
  key: string,
  error: unknown,
  { redeliverAfterMs }: Redelivery,
  hasFingerprint: boolean,
): Delivery<never> {
  if (error instanceof TerminalError) return { kind: "duplicate", key, value: undefined, error };
  if (!(error instanceof OncewardError)) return { kind: "released", key, error, delayMs: redeliverAfterMs };
  if (error instanceof ResultUnavailableError) {
    return { kind: "duplicate", key, value: undefined, error: undefined };
  }
  if (isAboutMessage(error, hasFingerprint)) return { kind: "refused", key, error };
  return postponed(key, error, redeliverAfterMs);
}

/** Returns the outcome if the function was called. A CompletionError of a nested run says nothing about this claim. */
function afterRunning<Value>(claim: Claim, error: unknown, redelivery: Redelivery): Delivery<Value> {
  const { key, attempt } = claim;
  const { unknownBecause }: Claim & Partial<RunningClaim> = claim;
  if (error instanceof TerminalError && unknownBecause === undefined) return { kind: "failed", key, error };
  if (!(error instanceof CompletionError && isAbout(error, claim))) {
    // Its next delivery would be a duplicate, also if its outcome is unknown.
    if (claim instanceof RecordedClaim) return { kind: "failed", key, error: terminalFrom(error) };
    return { kind: "released", key, error, delayMs: backoffAfter(redelivery, attempt) };
  }
  const { effect, stored } = error;
  // Stored without its value, but as done: the broker needs no more.
  if (!stored) return postponed(key, error, redelivery.redeliverAfterMs);
  return effect.status === "fulfilled"
    ? { kind: "processed", key, attempt, value: effect.value as Value }
    : { kind: "failed", key, error: effect.reason };
}

function postponed(key: string, error: OncewardError, redeliverAfterMs: number): Delivery<never> {
  const delayMs = Math.max(redeliverAfterMs, boundedDelayMs(error.retryDelayMs ?? 0));
  return { kind: "postponed", key, error, delayMs };
}

/** The fields of a claim that a message determines; the last one is that of the service. */
const OF_THE_MESSAGE: ReadonlySet<string> = new Set(["key", "fingerprint", "keyCreatedAt", "key_created_at"]);

/**
 * Returns whether the message itself is invalid or too old, not the consumer's settings, so that no delay would help. A policy may
 * require a fingerprint that the consumer has no option for.
 */
function isAboutMessage(error: OncewardError, hasFingerprint: boolean): boolean {
  const { reason, violations } = error;
  const { REUSED, TOO_OLD } = ReasonClass;
  const reasonClass = classOf(error);
  if (reasonClass === REUSED || reasonClass === TOO_OLD) return true;
  return (
    reason === "INVALID_REQUEST" &&
    violations.some(({ field }) => OF_THE_MESSAGE.has(field) && (hasFingerprint || field !== "fingerprint"))
  );
}
