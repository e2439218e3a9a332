import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";

/** The `domain` of every google.rpc.ErrorInfo that Onceward sends. */
export const DOMAIN = "onceward";

/** The details of an error that the service answered, beside its code and message; `errors.proto` explains them. */
export interface ServiceError {
  /** The name of an ErrorReason without its prefix, such as "ETAG_MISMATCH"; a newer service has more. */
  readonly reason: string;
  /** The facts of the reason, such as `actual_count`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields that were refused, such as "policy.key_retention", and why. */
  readonly violations: readonly { readonly field: string; readonly description: string }[];
  /** How long to wait before a retry, in milliseconds; undefined if the service did not say so. */
  readonly retryDelayMs: number | undefined;
  /** Names the call in the service's log. */
  readonly requestId: string | undefined;
}

/** Returns the details of an RPC's error; undefined if the network, a proxy or Connect made it, not the service. */
export function readServiceError(error: ConnectError): ServiceError | undefined {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === DOMAIN);
  if (info === undefined) return undefined;
  const { reason, metadata } = info;
  const [retry] = error.findDetails(RetryInfoSchema);
  const [request] = error.findDetails(RequestInfoSchema);
  const violations = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  return {
    reason,
    metadata,
    violations: violations.map(({ field, description }) => ({ field, description })),
    retryDelayMs: retry?.retryDelay && durationMs(retry.retryDelay),
    requestId: request?.requestId,
  };
}
