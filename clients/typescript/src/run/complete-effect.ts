import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Codec } from "./codec.ts";
import { dateOf } from "./date-of.ts";
import { errorFromCall } from "../errors/mapping.ts";
import { CompletionError, type ErrorClaim, type OncewardError } from "../errors/errors.ts";
import type { ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import type { RunningClaim } from "./held-claim.ts";
import { codecError, decodeValue, encodeEffect, encodeWithoutValue } from "./result-codec.ts";
import type { RunResult } from "./run-result.ts";

/**
 * Stores what the function did: the value is what a repeat will get.
 *
 * @throws CompletionError if it could not be stored as it was.
 */
export async function completeEffect<T>(
  claim: RunningClaim,
  effect: PromiseSettledResult<T>,
  codec: Codec<T> | undefined,
): Promise<RunResult<T>> {
  let result: MessageInitShape<typeof ResultSchema>;
  let value: T;
  try {
    result = encodeEffect(effect, codec);
    // Before it is stored: what can't be read now can't be replayed either.
    value = effect.status === "fulfilled" ? decodeValue(result, codec) : effect.reason;
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
    const why = errorFromCall(cause);
    // The claim stays held: it is the result that the service doesn't take.
    const unstorable = why.reason === "RESULT_TOO_LARGE" || why.reason === "INVALID_REQUEST";
    throw unstorable
      ? await completeWithoutValue(claim, effect, why)
      : new CompletionError(effect, why, false, nameOf(claim));
  }
}

/** The effect can't be undone, so it is stored as done, without its value. Returns what the caller is to be told. */
async function completeWithoutValue(
  claim: RunningClaim,
  effect: PromiseSettledResult<unknown>,
  why: OncewardError,
): Promise<CompletionError> {
  try {
    const reply = await claim.complete(encodeWithoutValue(effect, why));
    return new CompletionError(effect, why, reply !== undefined, nameOf(claim));
  } catch (cause) {
    return new CompletionError(effect, errorFromCall(cause), false, nameOf(claim));
  }
}

function nameOf({ namespace, key, fencingToken }: RunningClaim): ErrorClaim {
  return { namespace, key, fencingToken };
}
