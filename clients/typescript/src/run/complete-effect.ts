import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ClaimRef, CompletionError, type OncewardError } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import type { ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { dateOf } from "./calls.ts";
import type { RunningClaim } from "./claim.ts";
import type { Codec } from "./codec.ts";
import { codecError, encodeEffect, encodeWithoutValue, MARKED, readBack } from "./result-codec.ts";
import type { RunOptions, RunResult } from "./run-options.ts";

/**
 * Stores the function's outcome, and returns the value that a repeat will get.
 *
 * @throws CompletionError if the outcome could not be stored unchanged.
 */
export async function completeEffect<T>(
  claim: RunningClaim,
  effect: PromiseSettledResult<T>,
  { codec, stores }: { readonly codec?: Codec<T> | undefined } & Pick<RunOptions, "stores">,
): Promise<RunResult<T>> {
  let result: MessageInitShape<typeof ResultSchema>;
  let value: T;
  try {
    result = encodeEffect(effect, codec);
    value = effect.status === "fulfilled" ? readBack(effect.value, result, codec) : effect.reason;
    if (effect.status === "fulfilled" && stores === "mark") result = { ...result, ...MARKED };
  } catch (cause) {
    throw await completeWithoutValue(claim, effect, codecError(cause));
  }
  try {
    const reply = await claim.complete(result);
    const now = new Date();
    return {
      value,
      replayed: false,
      guarded: claim.guarded,
      attempt: claim.attempt,
      fencingToken: claim.fencingToken,
      completedAt: reply === undefined ? now : dateOf(reply.completedAt),
      expiresAt: reply === undefined ? now : dateOf(reply.expiresAt),
    };
  } catch (cause) {
    const error = errorFromCall(cause);
    // The service refuses the result; the claim is still held.
    const isResultRefused = error.reason === "RESULT_TOO_LARGE" || error.reason === "INVALID_REQUEST";
    throw isResultRefused
      ? await completeWithoutValue(claim, effect, error)
      : new CompletionError(effect, error, false, refOf(claim));
  }
}

/**
 * Stores the operation as done without its value, because its effect can't be undone. Returns the error for the
 * caller.
 */
async function completeWithoutValue(
  claim: RunningClaim,
  effect: PromiseSettledResult<unknown>,
  error: OncewardError,
): Promise<CompletionError> {
  try {
    const reply = await claim.complete(encodeWithoutValue(effect, error));
    return new CompletionError(effect, error, reply !== undefined, refOf(claim));
  } catch (cause) {
    return new CompletionError(effect, errorFromCall(cause), false, refOf(claim));
  }
}

function refOf({ namespace, key, fencingToken }: RunningClaim): ClaimRef {
  return { namespace, key, fencingToken };
}
