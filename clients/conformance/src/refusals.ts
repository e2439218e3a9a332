import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from "../../typescript/src/gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../../typescript/src/gen/onceward/v1/errors_pb.ts";
import {
  type BatchItemError,
  BatchItemErrorSchema,
} from "../../typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { ScriptedError } from "./case.ts";

/** Returns the error of a call alone, with google.rpc details as the service sends them. */
export function toConnectError(refusal: ScriptedError): ConnectError {
  const { code, reason, message = reason, metadata = {}, violations = [], retryDelayMs, requestId } = refusal;
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: "onceward", metadata } },
    ...(violations.length > 0
      ? [{ desc: BadRequestSchema, value: { fieldViolations: [...violations] } }]
      : []),
    ...(retryDelayMs === undefined
      ? []
      : [{ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(retryDelayMs) } }]),
    ...(requestId === undefined ? [] : [{ desc: RequestInfoSchema, value: { requestId } }]),
  ]);
}

/** Returns the error of an item of a batch; undefined for a reason that `errors.proto` does not have. */
export function toItemError(refusal: ScriptedError): BatchItemError | undefined {
  const { code, reason, message = reason, metadata = {}, violations = [], retryDelayMs, requestId } = refusal;
  const known = ErrorReason[reason as keyof typeof ErrorReason];
  if (known === undefined) return undefined;
  return create(BatchItemErrorSchema, {
    code,
    reason: known,
    message,
    metadata,
    fieldViolations: [...violations],
    ...(retryDelayMs !== undefined && { retryDelay: durationFromMs(retryDelayMs) }),
    ...(requestId !== undefined && { requestId }),
  });
}
