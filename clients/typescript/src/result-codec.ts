import type { MessageInitShape } from "@bufbuild/protobuf";
import { OncewardError, ResultUnavailableError, TerminalError } from "./errors.ts";
import type { Completed } from "./gen/onceward/v1/idempotency_pb.ts";
import { type Result, Result_Kind, type ResultSchema } from "./gen/onceward/v1/record_pb.ts";
import { decodeJson, encodeJson, JSON_CONTENT_TYPE } from "./json-bytes.ts";
import { MAX_RESULT_BYTES } from "./limits.ts";
import { truncateUtf8 } from "./violations.ts";

type ResultInit = MessageInitShape<typeof ResultSchema>;

/** Metadata of a result whose value could not be stored; its value is the reason. */
const LOST = "onceward-value-lost";
/** Enough to recognise a failure whose details were too large. */
const MAX_LOST_MESSAGE_BYTES = 1024;

/**
 * A function's outcome as it is stored: its value, or the TerminalError it threw.
 *
 * @throws OncewardError RESULT_NOT_JSON, RESULT_TOO_LARGE.
 */
export function encodeEffect(effect: PromiseSettledResult<unknown>): ResultInit {
  const { kind, value } = kindAndValue(effect);
  const payload = encodeJson(value);
  if (payload.byteLength > MAX_RESULT_BYTES) {
    const message = `The result is ${payload.byteLength} bytes; no policy takes more than ${MAX_RESULT_BYTES}.`;
    throw new OncewardError("RESULT_TOO_LARGE", message);
  }
  return { kind, payload, contentType: value === undefined ? "" : JSON_CONTENT_TYPE };
}

/** The same outcome without what could not be stored of it, so that it is not run again. */
export function encodeWithoutValue(effect: PromiseSettledResult<unknown>, why: OncewardError): ResultInit {
  if (effect.status === "fulfilled") return { kind: Result_Kind.SUCCESS, metadata: { [LOST]: why.reason } };
  const message = truncateUtf8(messageOf(effect.reason), MAX_LOST_MESSAGE_BYTES);
  return { kind: Result_Kind.FAILURE, payload: encodeJson({ message }), contentType: JSON_CONTENT_TYPE };
}

/**
 * The value of an operation that somebody completed.
 *
 * @throws TerminalError if it failed for good; ResultUnavailableError; OncewardError RESULT_NOT_JSON if it was stored
 *   by somebody who doesn't use JSON (read it by `api`).
 */
export function replay({ result, resultExpired }: Completed): unknown {
  if (result === undefined || resultExpired) {
    throw new ResultUnavailableError("RESULT_EXPIRED", "Done before; the retention of its result has ended.");
  }
  const lost = result.metadata[LOST];
  if (lost !== undefined) {
    throw new ResultUnavailableError("RESULT_LOST", `Done before; its value could not be stored: ${lost}.`);
  }
  const value = decodeValue(result);
  if (result.kind !== Result_Kind.FAILURE) return value;
  throw terminalError(value);
}

/** The value of a result that is stored as JSON. @throws OncewardError RESULT_NOT_JSON. */
export function decodeValue({ payload = new Uint8Array(), contentType }: ResultInit | Result): unknown {
  if (contentType === JSON_CONTENT_TYPE || payload.byteLength === 0) return decodeJson(payload);
  throw new OncewardError(
    "RESULT_NOT_JSON",
    `The result is stored as ${contentType || "bytes"}, not as JSON.`,
  );
}

function kindAndValue(effect: PromiseSettledResult<unknown>) {
  if (effect.status === "fulfilled") return { kind: Result_Kind.SUCCESS, value: effect.value };
  const { reason } = effect;
  const details = reason instanceof TerminalError ? reason.details : undefined;
  return { kind: Result_Kind.FAILURE, value: { message: messageOf(reason), details } };
}

function messageOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : `${reason}`;
}

/** A failure that another client stored may have any shape; then all of it is details. */
function terminalError(value: unknown): TerminalError {
  if (
    typeof value === "object" &&
    value !== null &&
    "message" in value &&
    typeof value.message === "string"
  ) {
    return new TerminalError(value.message, "details" in value ? value.details : undefined);
  }
  return new TerminalError("The operation failed for good.", value);
}
