import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ClaimRef, OncewardError, ResultUnavailableError, TerminalError } from "../errors/errors.ts";
import { truncateUtf8 } from "../errors/violations.ts";
import type { Completed } from "../gen/onceward/v1/idempotency_pb.ts";
import { type Result, Result_Kind, type ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { MAX_RESULT_BYTES } from "../wire/limits.ts";
import { type Codec, decodeJson, type EncodedValue, JSON_CONTENT_TYPE, jsonCodec } from "./codec.ts";

type ResultInit = MessageInitShape<typeof ResultSchema>;

/** Metadata of a result without its value, which could not be stored; says for which reason. */
const LOST = "onceward-value-lost";
/** In place of a reason: the value was not to be stored (`RunOptions.stores`). */
const MARK = "MARK";
/** In place of a value: only that the operation happened is stored. */
export const MARKED: EncodedValue = {
  payload: new Uint8Array(),
  contentType: "",
  metadata: { [LOST]: MARK },
};
/** Enough to recognise a failure whose details were too large. */
const MAX_LOST_MESSAGE_BYTES = 1024;

/**
 * Returns a function's outcome as it is stored: its value, by the codec, or the TerminalError it threw, as JSON.
 *
 * @throws OncewardError RESULT_NOT_JSON, CODEC_FAILED, RESULT_TOO_LARGE.
 */
export function encodeEffect<T>(
  effect: PromiseSettledResult<T>,
  codec: Codec<T> = jsonCodec as Codec<T>,
): ResultInit {
  const result =
    effect.status === "fulfilled"
      ? { kind: Result_Kind.SUCCESS, ...encodeValue(effect.value, codec) }
      : { kind: Result_Kind.FAILURE, ...jsonCodec.encode(failureOf(effect.reason)) };
  const sizeBytes = result.payload.byteLength;
  if (sizeBytes > MAX_RESULT_BYTES) {
    const message = `The result is ${sizeBytes} bytes; no policy takes more than ${MAX_RESULT_BYTES}.`;
    throw new OncewardError("RESULT_TOO_LARGE", message);
  }
  return result;
}

/** Returns an outcome without its value or details, which could not be stored: the operation must not run again. */
export function encodeWithoutValue(effect: PromiseSettledResult<unknown>, error: OncewardError): ResultInit {
  if (effect.status === "fulfilled") return { kind: Result_Kind.SUCCESS, metadata: { [LOST]: error.reason } };
  const { details: _, message, ...rest } = failureOf(effect.reason);
  const failure = { ...rest, message: truncateUtf8(message, MAX_LOST_MESSAGE_BYTES) };
  return { kind: Result_Kind.FAILURE, ...jsonCodec.encode(failure) };
}

/**
 * Returns the value of a completed operation.
 *
 * @throws TerminalError if the operation failed permanently.
 * @throws ResultUnavailableError that names `claim`; with RESULT_NOT_JSON or CODEC_FAILED if the result was stored in
 *   another format than the codec's (`api` reads it), with INTERNAL if it is of an unknown kind.
 */
export function replay<T>(
  { result, resultExpired }: Pick<Completed, "result" | "resultExpired">,
  codec?: Codec<T>,
  claim?: ClaimRef,
): T {
  if (result === undefined || resultExpired) {
    const message = "Done before; the retention of its result has ended.";
    throw new ResultUnavailableError("RESULT_EXPIRED", message, { claim });
  }
  const lost = result.metadata[LOST];
  if (lost !== undefined) {
    const message = `Done before; its value ${lost === MARK ? "is not kept" : `could not be stored: ${lost}`}.`;
    throw new ResultUnavailableError("RESULT_LOST", message, { claim });
  }
  if (result.kind === Result_Kind.FAILURE) throw storedFailure(result);
  if (result.kind !== Result_Kind.SUCCESS) {
    const message = `Done before; its result is of a kind that this client does not know: ${result.kind}.`;
    throw new ResultUnavailableError("INTERNAL", message, { claim });
  }
  try {
    return decodeValue(result, codec);
  } catch (cause) {
    const { reason, message } = codecError(cause);
    throw new ResultUnavailableError(reason, `Done before; its value can't be read: ${message}`, {
      cause,
      claim,
    });
  }
}

/** Returns what a replay brings: success, failure, or "lost" if the value is no longer stored, or can't be known. */
export function replayOutcome({ result, resultExpired }: Completed): "success" | "failure" | "lost" {
  if (result === undefined || resultExpired || result.metadata[LOST] !== undefined) return "lost";
  if (result.kind === Result_Kind.FAILURE) return "failure";
  return result.kind === Result_Kind.SUCCESS ? "success" : "lost";
}

/**
 * Returns the value that a run returns, which is decoded before it is stored: a value that can't be decoded now can't be replayed
 * either. A codec's mark has none to decode. @throws the codec's errors.
 */
export function readBack<T>(value: T, stored: ResultInit, codec?: Codec<T>): T {
  return stored.metadata === MARKED.metadata ? value : decodeValue(stored, codec);
}

/** Returns the value of a successful result. @throws the codec's errors. */
export function decodeValue<T>(
  { payload = new Uint8Array(), contentType = "", metadata = {} }: ResultInit | Result,
  codec: Codec<T> = jsonCodec as Codec<T>,
): T {
  return codec.decode({ payload, contentType, metadata });
}

function encodeValue<T>(value: T, codec: Codec<T>): EncodedValue {
  try {
    return codec.encode(value);
  } catch (cause) {
    throw codecError(cause);
  }
}

/** Returns a codec's error as an OncewardError: its own, or CODEC_FAILED. */
export function codecError(cause: unknown): OncewardError {
  if (cause instanceof OncewardError) return cause;
  return new OncewardError("CODEC_FAILED", cause instanceof Error ? cause.message : `${cause}`, { cause });
}

/** Returns the stored form of a failure. Clients of every version read its JSON. */
function failureOf(reason: unknown): { name?: string; message: string; details?: unknown } {
  if (!(reason instanceof TerminalError)) return { message: `${reason}`.toWellFormed() };
  const { name, message, details } = reason;
  const named = name !== "TerminalError" && { name: name.toWellFormed() };
  return { ...named, message: message.toWellFormed(), details };
}

/** Returns a stored failure. One that another client stored may have any shape; then all of it becomes `details`. */
function storedFailure({ payload, contentType }: Result): TerminalError {
  const failure = contentType === JSON_CONTENT_TYPE ? parsedFailure(payload) : payload;
  if (typeof failure !== "object" || failure === null || !("message" in failure)) {
    return new TerminalError("The operation has a terminal failure.", failure);
  }
  const { message, details, name } = failure as { message: unknown; details?: unknown; name?: unknown };
  if (typeof message !== "string") return new TerminalError("The operation has a terminal failure.", failure);
  return new TerminalError(message, details, typeof name === "string" ? { name } : {});
}

function parsedFailure(payload: Uint8Array): unknown {
  try {
    return decodeJson(payload);
  } catch {
    return payload;
  }
}
