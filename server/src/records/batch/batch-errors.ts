import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { CATALOGUE, type Reason, type Refusal } from "../../domain/refusal.ts";
import { ErrorReason } from "../../gen/onceward/v1/errors_pb.ts";
import { type BatchItemError, BatchItemErrorSchema } from "../../gen/onceward/v1/idempotency_pb.ts";

/** Returns the name of a code in google.rpc.Code, such as "INVALID_ARGUMENT". */
export function codeName(code: Code): string {
  return code === Code.Canceled ? "CANCELLED" : codeToString(code).toUpperCase();
}

/** google.rpc.Code by name. */
export const CODES: ReadonlyMap<string, Code> = new Map(
  Object.values(Code)
    .filter((code) => typeof code === "number")
    .map((code) => [codeName(code), code]),
);

/** Returns the code of a reason. */
export function codeOf(reason: Reason): Code {
  return CODES.get(CATALOGUE[reason]) ?? Code.Internal;
}

/** Returns a refusal as the error of an item, or of a whole batch: the same error as that of a single call. */
export function batchItemError(
  { reason, message, metadata, violations, retryAfterMs }: Refusal,
  requestId: string,
): BatchItemError {
  return create(BatchItemErrorSchema, {
    code: codeOf(reason),
    reason: ErrorReason[reason],
    message,
    metadata: { ...metadata },
    fieldViolations: violations.map(({ field, description }) => ({ field, description })),
    requestId,
    ...(retryAfterMs !== undefined && { retryDelay: durationFromMs(retryAfterMs) }),
  });
}
