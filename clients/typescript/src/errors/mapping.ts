import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorOf } from "./catalogue.ts";
import { type ErrorClaim, OncewardError } from "./errors.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";
import type { BatchItemError } from "../gen/onceward/v1/idempotency_pb.ts";

/** The `domain` of every google.rpc.ErrorInfo that Onceward sends. */
const DOMAIN = "onceward";

const REASON_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(ErrorReason).map(([name, number]) => [number, name]),
);

/** The error of an RPC, whoever made it: the service, something on the way, or connect itself. */
export function errorFromCall(cause: unknown): OncewardError {
  if (cause instanceof OncewardError) return cause;
  const error = ConnectError.from(cause);
  const [info] = error.findDetails(ErrorInfoSchema);
  if (info?.domain !== DOMAIN) {
    return new OncewardError("NO_ANSWER", error.message, { code: error.code, cause });
  }
  const [retry] = error.findDetails(RetryInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  return errorOf(info.reason, error.rawMessage, {
    code: error.code,
    metadata: info.metadata,
    violations: badRequest?.fieldViolations.map(({ field, description }) => ({ field, description })),
    retryDelayMs: retry?.retryDelay && durationMs(retry.retryDelay),
    cause,
  });
}

/** The error that the item's call would have failed with, had it been made alone. */
export function errorFromItem(item: BatchItemError): OncewardError {
  return errorOf(REASON_NAMES.get(item.reason) ?? `REASON_${item.reason}`, item.message, {
    code: item.code,
    metadata: item.metadata,
    violations: item.fieldViolations.map(({ field, description }) => ({ field, description })),
    retryDelayMs: item.retryDelay && durationMs(item.retryDelay),
  });
}

/**
 * Returns the error as one that names its claim. A copy, because the calls of a failed batch share one error. An error
 * that names its claim already is returned as it is.
 */
export function errorAbout(claim: ErrorClaim, error: OncewardError): OncewardError {
  if (error.claim !== undefined) return error;
  const { reason, message, code, metadata, violations, retryDelayMs, cause } = error;
  return errorOf(reason, message, { code, metadata, violations, retryDelayMs, cause, claim });
}

/**
 * Whether the same call, made again with the same claim id or fencing token, may fare better: the service said when
 * (RetryInfo), or says that it is away, or nobody can tell because the connection broke.
 */
export function isRetryable(error: OncewardError): boolean {
  return error.retryDelayMs !== undefined || isUnavailable(error);
}

/** Whether the service could not be asked: it is away, as it says itself, or nobody can tell because the connection broke. */
export function isUnavailable(error: OncewardError): boolean {
  if (error.code === Code.Unavailable || error.code === Code.DeadlineExceeded) return true;
  return error.reason === "NO_ANSWER" && brokeOnTheWay(error);
}

/** Connect has no one code for it: a reset connection is Aborted, one that just ends Canceled, a refused stream Internal. */
function brokeOnTheWay({ code, cause }: OncewardError): boolean {
  if (code === Code.Aborted || code === Code.Canceled) return true;
  const beneath = cause instanceof ConnectError ? cause.cause : cause;
  // Node's errors of sockets and of HTTP/2 have a code, as ECONNRESET and ERR_HTTP2_STREAM_ERROR; those of encoding don't.
  return beneath instanceof Error && "code" in beneath && typeof beneath.code === "string";
}

/**
 * Whether a Batch as a whole may have failed for what one of its items holds: it can't be encoded or parsed, or is too
 * large. Then its items are asked alone, and only the guilty one fails.
 */
export function isAboutContent(error: OncewardError): boolean {
  if (isRetryable(error)) return false;
  switch (error.code) {
    case Code.InvalidArgument:
    case Code.Internal:
    case Code.Unknown:
    case Code.ResourceExhausted:
      return error.reason === "NO_ANSWER" || error.reason === "INVALID_REQUEST";
    default:
      return false;
  }
}
