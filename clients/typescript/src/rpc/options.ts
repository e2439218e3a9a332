import { Code } from "@connectrpc/connect";
import { RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import type { AdapterRunOptions } from "../run/guarded-run.ts";
import type { ResolveFor } from "../run/resolution.ts";
import type { RpcFailure } from "./failure.ts";

/** How calls are guarded. `Call` is the library's type of a call. */
export interface RpcOptions<Call> extends AdapterRunOptions {
  /**
   * Returns the caller, as the server authenticated it: an account's id, never a secret. Each caller has its own
   * keys; otherwise one caller could get another's response. If all callers may see everything, return a constant.
   * Must not be empty.
   */
  readonly caller: (call: Call) => string;
  /**
   * Returns a call's key: 1-255 printable ASCII characters. Default: the `idempotency-key` header, quoted as a
   * structured-field string, or without quotes.
   */
  readonly key?: (call: Call) => string | undefined;
  /** Whether a call without a key is refused with INVALID_ARGUMENT; otherwise it passes, unguarded. Default: true. */
  readonly required?: boolean;
  /** How long a call waits for another one with its key before it fails with ABORTED, in milliseconds. Default: 0. */
  readonly waitMs?: number;
  /**
   * Returns the call's identity, any value that `fingerprintWithFiles` accepts. Undefined, a number that is not finite
   * and a lone surrogate are refused with INVALID_ARGUMENT; a value whose type has no fingerprint, such as a Map, with
   * INTERNAL: the server's program has to change. The first refusal of a guard is a warning of the process
   * (ONCEWARD_NO_FINGERPRINT) with its reason. Default: the request message.
   */
  readonly fingerprint?: (call: Call) => unknown;
  /**
   * Returns whether a failure is the operation's outcome: `true`, it is stored and replayed; `false`, it is an error, which releases the
   * claim unless `onError` says otherwise; or `unknown`, the claim is left to the namespace's policy. Default: `true` for
   * INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, FAILED_PRECONDITION and OUT_OF_RANGE, which refuse the request itself,
   * so that a retry would fail, too; `unknown` for CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, and UNAVAILABLE without a RetryInfo, as of a
   * call that was cut. An error of another guard or of the service (its ErrorInfo has the domain "onceward") is never stored.
   * `mark`: of a response, only that it was made is kept; duplicates get RESULT_LOST. Failures are stored as by default.
   */
  readonly stores?: ((failure: RpcFailure) => boolean | "unknown") | "mark";
  /**
   * Finds out what became of an earlier attempt, as `RunOptions.resolve` describes it. `happened` takes the response message.
   * Default: none.
   */
  readonly resolve?: ResolveFor<Call> | undefined;
}

const OUTCOMES: ReadonlySet<number> = new Set([
  Code.InvalidArgument,
  Code.NotFound,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.FailedPrecondition,
  Code.OutOfRange,
]);

/** What a platform or a connection ends a call with, while its handler may still run. */
const CUT: ReadonlySet<number> = new Set([Code.Canceled, Code.Unknown, Code.DeadlineExceeded]);

/** The default of `stores`. */
export function isOutcome({ code, details }: RpcFailure): boolean | "unknown" {
  // A server that sheds load says when to come back.
  const isLost = code === Code.Unavailable && !details.some(({ type }) => type === RetryInfoSchema.typeName);
  return isLost || CUT.has(code) ? "unknown" : OUTCOMES.has(code);
}
