import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Codec, type EncodedValue, jsonCodec } from "./codec.ts";
import { ResultTooLargeError } from "../errors/catalogue.ts";
import { type ErrorClaim, OncewardError, ResultUnavailableError, TerminalError } from "../errors/errors.ts";
import type { Completed } from "../gen/onceward/v1/idempotency_pb.ts";
import { type Result, Result_Kind, type ResultSchema } from "../gen/onceward/v1/record_pb.ts";
import { decodeJson, JSON_CONTENT_TYPE } from "./json-bytes.ts";
import { MAX_RESULT_BYTES } from "../wire/limits.ts";
import { truncateUtf8 } from "../errors/violations.ts";

type ResultInit = MessageInitShape<typeof ResultSchema>;

/** Metadata of a result whose value could not be stored; its value is the reason. */
const LOST = "onceward-value-lost";
/** Enough to recognise a failure whose details were too large. */
const MAX_LOST_MESSAGE_BYTES = 1024;

/**
 * A function's outcome as it is stored: its value, by the codec, or the TerminalError it threw, as JSON.
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
    throw new ResultTooLargeError(message);
  }
  return result;
}

/** The same outcome without what could not be stored of it, so that it is not run again. */
export function encodeWithoutValue(effect: PromiseSettledResult<unknown>, why: OncewardError): ResultInit {
  if (effect.status === "fulfilled") return { kind: Result_Kind.SUCCESS, metadata: { [LOST]: why.reason } };
  const { details: _, message, ...rest } = failureOf(effect.reason);
  const failure = { ...rest, message: truncateUtf8(message, MAX_LOST_MESSAGE_BYTES) };
  return { kind: Result_Kind.FAILURE, ...jsonCodec.encode(failure) };
}

/**
 * The value of an operation that somebody completed.
 *
 * @throws TerminalError if it failed for good.
 * @throws ResultUnavailableError, also with RESULT_NOT_JSON or CODEC_FAILED if it was stored in another format than the
 *   codec's (read it by `api`). It names `claim`.
 */
export function replay<T>({ result, resultExpired }: Completed, codec?: Codec<T>, claim?: ErrorClaim): T {
  if (result === undefined || resultExpired) {
    const message = "Done before; the retention of its result has ended.";
    throw new ResultUnavailableError("RESULT_EXPIRED", message, { claim });
  }
  const lost = result.metadata[LOST];
  if (lost !== undefined) {
    const message = `Done before; its value could not be stored: ${lost}.`;
    throw new ResultUnavailableError("RESULT_LOST", message, { claim });
  }
  if (result.kind === Result_Kind.FAILURE) throw storedFailure(result);
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

/** What a replay tells: success, failure, or that the value is lost. */
export function replayOutcome({ result, resultExpired }: Completed): "success" | "failure" | "lost" {
  if (result === undefined || resultExpired || result.metadata[LOST] !== undefined) return "lost";
  return result.kind === Result_Kind.FAILURE ? "failure" : "success";
}

/** The value of a successful result. @throws what the codec throws. */
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

/** What a codec threw, as an error that says so; it may say itself what is wrong. */
export function codecError(cause: unknown): OncewardError {
  if (cause instanceof OncewardError) return cause;
  return new OncewardError("CODEC_FAILED", cause instanceof Error ? cause.message : `${cause}`, { cause });
}

/** What is stored of a failure. Its JSON is read by clients of every version. */
function failureOf(reason: unknown): { name?: string; message: string; details?: unknown } {
  if (!(reason instanceof TerminalError)) return { message: `${reason}` };
  const { name, message, details } = reason;
  return { ...(name !== "TerminalError" && { name }), message, details };
}

/** A failure that another client stored may have any shape; then all of it is details. */
function storedFailure({ payload, contentType }: Result): TerminalError {
  const failure = contentType === JSON_CONTENT_TYPE ? parsedFailure(payload) : payload;
  if (typeof failure !== "object" || failure === null || !("message" in failure)) {
    return new TerminalError("The operation failed for good.", failure);
  }
  const { message, details, name } = failure as { message: unknown; details?: unknown; name?: unknown };
  if (typeof message !== "string") return new TerminalError("The operation failed for good.", failure);
  return new TerminalError(message, details, typeof name === "string" ? { name } : {});
}

function parsedFailure(payload: Uint8Array): unknown {
  try {
    return decodeJson(payload);
  } catch {
    return payload;
  }
}
