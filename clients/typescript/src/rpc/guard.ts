import { Code } from "@connectrpc/connect";
import { TerminalError } from "../errors/errors.ts";
import { fingerprintWithFiles } from "../keys/fingerprint.ts";
import { parseIdempotencyKey } from "../keys/idempotency-key.ts";
import { joinKey } from "../keys/keys.ts";
import type { Claim } from "../run/claim.ts";
import type { Runner } from "../run/client.ts";
import type { Codec } from "../run/codec.ts";
import { callerOf, guardedRun, pickRunOptions } from "../run/guarded-run.ts";
import type { CodecRunOptions } from "../run/run-options.ts";
import { type RpcFailure, refusal, refusalOf, storedFailure, terminalError } from "./failure.ts";
import { isOutcome, type RpcOptions } from "./options.ts";

/** A unary call, whatever library it came through. */
export interface GuardedCall<Native, Response> {
  readonly native: Native;
  /** Such as `/shop.v1.Charges/CreateCharge`. */
  readonly procedure: string;
  /** Its key where `options.key` is not set, as it came. */
  readonly key: string | undefined;
  /** What the key stands for: any JSON value. */
  readonly fingerprint: () => unknown;
  readonly codec: Codec<Response>;
}

/** What an error says beside its failure. */
export interface FailureFacts {
  /** It was answered before. */
  readonly replayed: boolean;
  /** For whoever logs on the server; it is not sent. */
  readonly cause?: unknown;
}

/** How a library's errors are read and made. */
export interface Failures {
  /** Undefined for an error that has no code: it is not stored. */
  read(error: unknown): RpcFailure | undefined;
  make(failure: RpcFailure, facts: FailureFacts): unknown;
}

/** What a handler answered: the message, and the response as the library sends it. */
export interface HandledCall<Response, Sent> {
  readonly message: Response;
  readonly sent: Sent;
}

/**
 * What the call is answered with.
 *
 * - `unguarded`: the handler is to be called, it has not been.
 * - `handled`: the handler's response, as it is.
 * - `replayed`: this message, and the handler was not called.
 */
export type CallAnswer<Response, Sent> =
  | { readonly kind: "unguarded" }
  | { readonly kind: "handled"; readonly sent: Sent }
  | { readonly kind: "replayed"; readonly message: Response };

/**
 * Answers a call, and calls the handler unless its operation was done before. Rejects with what the handler rejects
 * with, now or before, or with a failure that `make` made; then nothing ran.
 */
export type CallGuard<Native> = <Response, Sent>(
  call: GuardedCall<Native, Response>,
  handle: (claim: Claim) => Promise<HandledCall<Response, Sent>>,
) => Promise<CallAnswer<Response, Sent>>;

/** What is not stored in quotes is a key as it stands. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** The guard that the adapters for RPCs are made of. */
export function createCallGuard<Native>(
  onceward: Runner,
  options: RpcOptions<Native>,
  failures: Failures,
): CallGuard<Native> {
  const { required = true, stores = isOutcome } = options;
  if (typeof options.caller !== "function") throw new TypeError("caller must be a function of the call");

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
      const failure = failures.read(outcome.reason);
      if (failure === undefined || !stores(failure.code)) throw outcome.reason;
      throw terminalError(failure, outcome.reason);
    };
    const operation = await operationOf(options, call, key, failures);
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

async function operationOf<Native, Response>(
  options: RpcOptions<Native>,
  call: GuardedCall<Native, Response>,
  key: string,
  failures: Failures,
): Promise<CodecRunOptions<Response>> {
  const { waitMs = 0, caller, fingerprint = call.fingerprint } = options;
  return {
    ...pickRunOptions(options),
    waitMs,
    key: joinKey(call.procedure, callerOf(caller, call.native), key),
    fingerprint: await fingerprintCall(fingerprint(call.native), failures),
    codec: call.codec,
  };
}

/** A value without a fingerprint, undefined included, would pass for any other. @throws the failure of a refused call. */
async function fingerprintCall(value: unknown, failures: Failures): Promise<Uint8Array> {
  try {
    return await fingerprintWithFiles(value);
  } catch (cause) {
    const message = "The request can't be told from another one.";
    throw failures.make(refusal(Code.InvalidArgument, "INVALID_REQUEST", message), {
      replayed: false,
      cause,
    });
  }
}

/** The error that a call under which nothing ran fails with. */
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
