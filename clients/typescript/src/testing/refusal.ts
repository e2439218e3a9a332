import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import type { CatalogueReason, Violation } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import { factsOf } from "../errors/reasons.ts";
import { DOMAIN } from "../errors/service-error.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";
import { type BatchItemError, BatchItemErrorSchema } from "../gen/onceward/v1/idempotency_pb.ts";

/** A reason for which a call may be refused; `errors.proto` explains each. */
export type RefusalReason = CatalogueReason;

/** Short, because tests need not spare the service. */
const RETRY_DELAY = durationFromMs(1);

/** Returns the code of a reason, as the contract has it; Unknown for a reason that it does not have. */
export function codeOf(reason: string): Code {
  const { code = "" } = factsOf(reason) ?? {};
  return codeFromString(code.toLowerCase().replace("cancelled", "canceled")) ?? Code.Unknown;
}

/** Returns the error of a refused call, with the reason's code and the details that the service sends. */
export function refusal(
  reason: RefusalReason,
  message: string,
  metadata: Readonly<Record<string, string>> = {},
  violations: readonly Violation[] = [],
): ConnectError {
  const code = codeOf(reason);
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: DOMAIN, metadata } },
    ...(violations.length > 0
      ? [{ desc: BadRequestSchema, value: { fieldViolations: [...violations] } }]
      : []),
    ...(code === Code.Unavailable ? [{ desc: RetryInfoSchema, value: { retryDelay: RETRY_DELAY } }] : []),
  ]);
}

/** Returns a refusal as the reply to a batch's item. Any other error is a bug of this implementation. */
export function itemError(error: unknown): BatchItemError {
  if (!(error instanceof ConnectError)) throw error;
  const { reason, code, metadata, violations, retryDelayMs } = errorFromCall(error);
  return create(BatchItemErrorSchema, {
    code: code ?? Code.Internal,
    reason: ErrorReason[reason as RefusalReason],
    message: error.rawMessage,
    metadata: { ...metadata },
    fieldViolations: [...violations],
    ...(retryDelayMs !== undefined && { retryDelay: durationFromMs(retryDelayMs) }),
  });
}
