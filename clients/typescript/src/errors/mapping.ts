import { durationMs } from "@bufbuild/protobuf/wkt";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";
import type { BatchItemError } from "../gen/onceward/v1/idempotency_pb.ts";
import * as catalogue from "./catalogue.ts";
import { CODE, isConnectError } from "./connect-error.ts";
import { type ClaimRef, type ErrorDetails, OncewardError, ResultUnavailableError } from "./errors.ts";
import { factsOf, reasonName } from "./reasons.ts";
import { readServiceError } from "./service-error.ts";

const CLASSES = new Map(Object.values(catalogue).map((each) => [each.reason as string, each] as const));

/** Returns an error of its reason's class; a plain OncewardError for a reason without one. */
export function errorOf(reason: string, message: string, facts: ErrorDetails): OncewardError {
  const Known = CLASSES.get(reason);
  return Known === undefined ? new OncewardError(reason, message, facts) : new Known(message, facts);
}

/** Returns the error of an RPC as an OncewardError, whether the service, a proxy or Connect made it. */
export function errorFromCall(cause: unknown): OncewardError {
  if (cause instanceof OncewardError) return cause;
  if (!isConnectError(cause)) return errorFromElsewhere(cause);
  const { code } = cause;
  const answered = readServiceError(cause);
  if (answered === undefined) return new OncewardError("NO_ANSWER", cause.message, { code, cause });
  const { reason, ...details } = answered;
  return errorOf(reason, cause.rawMessage, { ...details, code, cause });
}

/** Returns the error of a call that failed with no error of Connect's, as `ConnectError.from` would understand it. */
function errorFromElsewhere(cause: unknown): OncewardError {
  const { name, message } = cause instanceof Error ? cause : { name: "", message: String(cause) };
  const isAborted = name === "AbortError" || name === "TimeoutError";
  const code = isAborted ? CODE.CANCELED : CODE.UNKNOWN;
  return new OncewardError("NO_ANSWER", message, { code, cause });
}

/** Returns the error with which the item's call would have failed outside a batch. */
export function errorFromItem(item: BatchItemError): OncewardError {
  return errorOf(reasonName(item.reason) ?? `REASON_${item.reason}`, item.message, {
    code: item.code,
    metadata: item.metadata,
    violations: item.fieldViolations.map(({ field, description }) => ({ field, description })),
    retryDelayMs: item.retryDelay && durationMs(item.retryDelay),
    requestId: item.requestId || undefined,
  });
}

/**
 * Returns a copy of the error that names the claim; a copy, because the calls of a failed batch share one error. An
 * error that already names a claim is returned unchanged.
 */
export function errorAbout(claim: ClaimRef, error: OncewardError): OncewardError {
  if (error.claim !== undefined) return error;
  const { reason, message, code, metadata, violations, retryDelayMs, requestId, cause } = error;
  return errorOf(reason, message, { code, metadata, violations, retryDelayMs, requestId, cause, claim });
}

/**
 * Returns whether a retry with the same claim id or fencing token may succeed: the service said when to retry
 * (RetryInfo), or is unavailable, or the connection broke and the outcome is unknown.
 */
export function isRetryable(error: OncewardError): boolean {
  return error.retryDelayMs !== undefined || isUnavailable(error);
}

/**
 * Returns whether a call that is safe to repeat is repeated: also if it is unclear why no answer came. gRPC makes
 * these codes of a proxy's HTTP 500 and of a stream that is reset, and also of other failures. For a claim that is held
 * (`isHeld`), the service was reached, so that what gRPC makes of HTTP 404, 403 and 401 is a proxy's, such as one without
 * replicas.
 */
export function isToBeRepeated(error: OncewardError, isHeld = false): boolean {
  if (isRetryable(error)) return true;
  const unclear: unknown[] = [CODE.UNKNOWN, CODE.INTERNAL, CODE.RESOURCE_EXHAUSTED];
  const pages: unknown[] = [CODE.UNIMPLEMENTED, CODE.PERMISSION_DENIED, CODE.UNAUTHENTICATED];
  const codes = isHeld ? [...unclear, ...pages] : unclear;
  return error.reason === "NO_ANSWER" && codes.includes(error.code);
}

/** Returns whether the service is unavailable by its own answer, or the connection broke and the outcome is unknown. */
export function isUnavailable(error: OncewardError): boolean {
  if (error.code === CODE.UNAVAILABLE || error.code === CODE.DEADLINE_EXCEEDED) return true;
  return error.reason === "NO_ANSWER" && isConnectionBroken(error);
}

/**
 * Returns whether nothing is known about the key because the service is unavailable. A contended key is unavailable for the
 * moment, but the service was reached: other callers claim the key.
 */
export function isUnreachable(error: OncewardError): boolean {
  return isUnavailable(error) && error.reason !== "RECORD_CONTENDED";
}

/**
 * Returns whether a call that failed with this error may have had its effect, or may still have it: its answer was lost, or
 * its caller stopped waiting. Any other reason of the service's catalogue is a definite refusal.
 */
export function mayHaveHappened({ reason }: OncewardError): boolean {
  return factsOf(reason)?.mayHaveHappened ?? true;
}

/**
 * Connect has several codes for this: a reset connection is Aborted, one that ends is Canceled, a refused stream
 * Internal.
 */
function isConnectionBroken({ code, cause }: OncewardError): boolean {
  if (code === CODE.ABORTED || code === CODE.CANCELED) return true;
  const inner = isConnectError(cause) ? cause.cause : cause;
  // Node's socket and HTTP/2 errors have a code, such as ECONNRESET or ERR_HTTP2_STREAM_ERROR; encoding errors don't.
  return inner instanceof Error && "code" in inner && typeof inner.code === "string";
}

/** Returns whether a claim was refused because of its key's time: it is required and unknown, or in the future. */
export function isAboutKeyTime({ reason, violations }: OncewardError): boolean {
  return reason === "INVALID_REQUEST" && violations.some(({ field }) => field === "key_created_at");
}

/**
 * Returns whether a whole Batch may have failed because of the content of one item: it can't be encoded or parsed, or
 * is too large. The items are then sent one by one, so that only the invalid one fails.
 */
export function isAboutContent(error: OncewardError): boolean {
  if (isRetryable(error)) return false;
  switch (error.code) {
    case CODE.INVALID_ARGUMENT:
    case CODE.INTERNAL:
    case CODE.UNKNOWN:
    case CODE.RESOURCE_EXHAUSTED:
      return error.reason === "NO_ANSWER" || error.reason === "INVALID_REQUEST";
    default:
      return false;
  }
}

/** Returns what an adapter does about an error under which the function did not run. */
export function classOf(error: OncewardError): ReasonClass {
  if (error instanceof ResultUnavailableError) return ReasonClass.GONE;
  const known = factsOf(error.reason)?.reasonClass ?? ReasonClass.UNSPECIFIED;
  if (known !== ReasonClass.UNSPECIFIED && known !== ReasonClass.FIX) return known;
  return isRetryable(error) ? ReasonClass.RETRY : ReasonClass.FIX;
}
