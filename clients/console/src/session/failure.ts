import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from "@onceward/gen/google/rpc/error_details_pb.ts";

/** What a failed call says, for a person. */
export interface Failure {
  readonly code: Code;
  /** An ErrorReason's name without its prefix, such as "ETAG_MISMATCH"; empty: the answer named none. */
  readonly reason: string;
  readonly message: string;
  /** The id of the call in the server's log; empty: no answer arrived. */
  readonly requestId: string;
  /** The fields that were refused, and why. */
  readonly violations: readonly FieldViolation[];
  /** ErrorInfo's metadata, such as `actual_count`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** When a retry can succeed, in milliseconds from now; undefined: the answer does not say. */
  readonly retryAfterMs: number | undefined;
}

/** A field of a request that was refused. */
export interface FieldViolation {
  /** A path such as "policy.key_retention". */
  readonly field: string;
  readonly description: string;
}

const MS_PER_SECOND = 1_000;
const NANOS_PER_MS = 1_000_000;

/** Returns what is known about a failed call. `error` is anything that was thrown. */
export function readFailure(error: unknown): Failure {
  const connectError = ConnectError.from(error);
  const [info] = connectError.findDetails(ErrorInfoSchema);
  const [request] = connectError.findDetails(RequestInfoSchema);
  const delay = connectError.findDetails(RetryInfoSchema)[0]?.retryDelay;
  const fields = connectError.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations);
  return {
    code: connectError.code,
    reason: info?.reason ?? "",
    message: connectError.rawMessage,
    requestId: request?.requestId ?? connectError.metadata.get("x-request-id") ?? "",
    violations: fields.map(({ field, description }) => ({ field, description })),
    metadata: info?.metadata ?? {},
    retryAfterMs:
      delay === undefined
        ? undefined
        : Number(delay.seconds) * MS_PER_SECOND + Math.ceil(delay.nanos / NANOS_PER_MS),
  };
}

/** Tells whether the same call can succeed a moment later. */
export function isTransient(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Unavailable || code === Code.Unknown || code === Code.DeadlineExceeded;
}
