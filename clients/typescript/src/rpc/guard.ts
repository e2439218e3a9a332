import { Code } from "@connectrpc/connect";
import { TerminalError } from "../errors/errors.ts";
import { fingerprintWithFiles } from "../keys/fingerprint.ts";
import { parseIdempotencyKey } from "../keys/idempotency-key.ts";
import { keyTime } from "../keys/key-time.ts";
import { joinKey } from "../keys/keys.ts";
import { UnsupportedFingerprintType } from "../keys/plain-value.ts";
import type { Claim } from "../run/claim.ts";
import type { Runner } from "../run/client.ts";
import type { Codec } from "../run/codec.ts";
import { Warnings } from "../run/events.ts";
import {
  type AnswerOptions,
  callerOf,
  checkGuardOptions,
  checkOptionalFunction,
  guardedRun,
  pickRunOptions,
  warnOfFingerprint,
} from "../run/guarded-run.ts";
import { OutcomeUnknownError, ownWordOf } from "../run/outcome-unknown.ts";
import { resolveFor } from "../run/resolution.ts";
import type { CodecRunOptions } from "../run/run-options.ts";
import { isRefusal, type RpcFailure, refusal, refusalOf, storedFailure, terminalError } from "./failure.ts";
import { isOutcome, type RpcOptions } from "./options.ts";

/** A unary call, independent of the library. */
export interface GuardedCall<Native, Response> {
  readonly native: Native;
  /** Such as `/shop.v1.Charges/CreateCharge`. */
  readonly procedure: string;
  /** The key as received, if `options.key` is not set. */
  readonly key: string | undefined;
  /** Returns the call's identity: any JSON value. */
  readonly fingerprint: () => unknown;
  readonly codec: Codec<Response>;
}

/** Details of an error beside its failure. */
export interface FailureFacts {
  /** Whether the failure is a replay. */
  readonly replayed: boolean;
  /** For the server's own log; it is not sent. */
  readonly cause?: unknown;
}

/** Reads and makes a library's errors. */
export interface Failures {
  /** Returns the failure of an error; undefined for an error without a code, which is not stored. */
  read(error: unknown): RpcFailure | undefined;
  make(failure: RpcFailure, facts: FailureFacts): unknown;
}

/** A handler's answer: the message, and the response in the library's form. */
export interface HandledCall<Response, Sent> {
  readonly message: Response;
  readonly sent: Sent;
}

/**
 * The answer to a call:
 *
 * - `unguarded`: call the handler; the guard has not called it.
 * - `handled`: send the handler's response.
 * - `replayed`: send this stored message; the handler was not called.
 */
export type CallAnswer<Response, Sent> =
  | { readonly kind: "unguarded" }
  | { readonly kind: "handled"; readonly sent: Sent }
  | { readonly kind: "replayed"; readonly message: Response };

/**
 * Answers a call, and calls the handler unless its operation was done before. Rejects with the handler's error, now or
 * replayed, or with a failure that `make` made; then the handler was not called.
 */
export type CallGuard<Native> = <Response, Sent>(
  call: GuardedCall<Native, Response>,
  handle: (claim: Claim) => Promise<HandledCall<Response, Sent>>,
) => Promise<CallAnswer<Response, Sent>>;

/** The form of a key that `options.key` returns: it has no quotes. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** Returns the guard that the RPC adapters use. @throws InvalidRequestError for an invalid option. */
export function createCallGuard<Native>(
  onceward: Runner,
  options: RpcOptions<Native>,
  failures: Failures,
): CallGuard<Native> {
  const { required = true } = options;
  const stores = options.stores === "mark" ? isOutcome : (options.stores ?? isOutcome);
  checkGuardOptions(options);
  const warnings = new Warnings();
  checkOptionalFunction("key", options.key);

  return async <Response, Sent>(
    call: GuardedCall<Native, Response>,
    handle: (claim: Claim) => Promise<HandledCall<Response, Sent>>,
  ): Promise<CallAnswer<Response, Sent>> => {
    const sent = options.key === undefined ? call.key : options.key(call.native);
    if (sent === undefined && !required) return { kind: "unguarded" };
    const key = options.key === undefined ? parseIdempotencyKey(sent ?? "") : KEY.exec(sent ?? "")?.[0];
    if (key === undefined) throw failures.make(keyRefusal(sent), { replayed: false });

    const store = (outcome: PromiseSettledResult<HandledCall<Response, Sent>>) => {
      if (outcome.status === "fulfilled") return outcome.value.message;
      const { reason } = outcome;
      const failure = ownWordOf(reason) === undefined ? failures.read(reason) : undefined;
      if (failure === undefined || isRefusal(failure)) throw reason;
      const verdict = verdictOf(stores, failure);
      if (verdict === true) throw terminalError(failure, reason);
      if (verdict === false) throw reason;
      const message = `The code ${failure.code} does not say whether the call had its effect.`;
      throw new OutcomeUnknownError(message, { cause: reason });
    };
    const operation = await operationOf(options, call, key, (value) =>
      fingerprintCall(value, failures, warnings),
    );
    const run = await guardedRun(onceward, operation, handle, store);
    switch (run.kind) {
      case "ran":
        if (run.outcome.status === "rejected") throw run.outcome.reason;
        return { kind: "handled", sent: run.outcome.value.sent };
      case "replayed":
        return { kind: "replayed", message: run.value };
      case "refused":
        throw errorFor(run.error, failures);
    }
  };
}

/** Asks `stores`, which runs after the effect. @throws OutcomeUnknownError if it throws. */
function verdictOf(stores: typeof isOutcome, failure: RpcFailure): boolean | "unknown" {
  try {
    return stores(failure);
  } catch (cause) {
    throw new OutcomeUnknownError("The option `stores` failed.", { cause });
  }
}

async function operationOf<Native, Response>(
  options: RpcOptions<Native>,
  call: GuardedCall<Native, Response>,
  key: string,
  fingerprinted: (value: unknown) => Promise<Uint8Array>,
): Promise<CodecRunOptions<Response> & AnswerOptions> {
  const { waitMs = 0, caller, fingerprint = call.fingerprint } = options;
  return {
    ...pickRunOptions(options),
    waitMs,
    key: joinKey(call.procedure, callerOf(caller, call.native), key),
    keyCreatedAt: keyTime(key),
    fingerprint: await fingerprinted(fingerprint(call.native)),
    codec: call.codec,
    resolve: resolveFor(call.native, options.resolve),
  };
}

/**
 * Refuses values without a fingerprint, undefined included: all calls would be equal. @throws the failure of the
 * call.
 */
async function fingerprintCall(value: unknown, failures: Failures, warnings: Warnings): Promise<Uint8Array> {
  try {
    return await fingerprintWithFiles(value);
  } catch (cause) {
    const isProgramsFault = cause instanceof UnsupportedFingerprintType;
    warnOfFingerprint(warnings, isProgramsFault ? "INTERNAL" : "INVALID_ARGUMENT", cause);
    const message = "The request can't be identified.";
    const failure = isProgramsFault
      ? refusalOf(cause)
      : refusal(Code.InvalidArgument, "INVALID_REQUEST", message);
    throw failures.make(failure, {
      replayed: false,
      cause,
    });
  }
}

/** Returns the error of a call whose handler was not called. */
function errorFor(error: unknown, failures: Failures): unknown {
  if (error instanceof TerminalError) {
    const stored = storedFailure(error);
    return stored === undefined ? error : failures.make(stored, { replayed: true });
  }
  return failures.make(refusalOf(error), { replayed: false, cause: error });
}

function keyRefusal(sent: string | undefined): RpcFailure {
  const message =
    sent === undefined ? "This call requires an idempotency key." : "The idempotency key is malformed.";
  return refusal(Code.InvalidArgument, "INVALID_REQUEST", message);
}
