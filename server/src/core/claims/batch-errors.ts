import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/onceward/v1/errors_pb.ts";
import { type BatchItemError, BatchItemErrorSchema } from "../../gen/onceward/v1/idempotency_pb.ts";
import { CATALOGUE, type CodeName, type Refusal } from "../domain/refusal.ts";

/** google.rpc.Code by the names that the catalogue uses. */
export const CODES: Readonly<Record<CodeName, Code>> = {
  INVALID_ARGUMENT: Code.InvalidArgument,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  ABORTED: Code.Aborted,
  NOT_FOUND: Code.NotFound,
  ALREADY_EXISTS: Code.AlreadyExists,
  RESOURCE_EXHAUSTED: Code.ResourceExhausted,
  UNAUTHENTICATED: Code.Unauthenticated,
  PERMISSION_DENIED: Code.PermissionDenied,
  UNAVAILABLE: Code.Unavailable,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  CANCELLED: Code.Canceled,
  INTERNAL: Code.Internal,
};

/** Returns a refusal as the error of an item, or of a whole batch: the same error as that of a single call. */
export function batchItemError(
  { reason, message, metadata, violations, retryAfterMs }: Refusal,
  requestId: string,
): BatchItemError {
  return create(BatchItemErrorSchema, {
    code: CODES[CATALOGUE[reason]],
    reason: ErrorReason[reason],
    message,
    metadata: { ...metadata },
    fieldViolations: violations.map(({ field, description }) => ({ field, description })),
    requestId,
    ...(retryAfterMs !== undefined && { retryDelay: durationFromMs(retryAfterMs) }),
  });
}
