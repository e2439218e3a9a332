import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { type CatalogueReason, OncewardError, type Violation } from "../errors/errors.ts";
import { factsOf } from "../errors/reasons.ts";
import { DOMAIN } from "../errors/service-error.ts";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";
import { type BatchItemError, BatchItemErrorSchema } from "../gen/onceward/v1/idempotency_pb.ts";

/** A reason for which a call may be refused; `errors.proto` explains each. */
export type RefusalReason = CatalogueReason;

/** Short, because tests need not spare the service. */
const RETRY_AFTER_MS = 1;

/** Returns a refusal as the client sees it. */
export function refusal(
  reason: RefusalReason,
  message: string,
  facts: {
    readonly metadata?: Readonly<Record<string, string>>;
    readonly violations?: readonly Violation[];
  } = {},
): OncewardError {
  const code = codeFromString((factsOf(reason)?.code ?? "").toLowerCase().replace("cancelled", "canceled"));
  const retryDelayMs = code === Code.Unavailable ? RETRY_AFTER_MS : undefined;
  return new OncewardError(reason, message, { ...facts, code, retryDelayMs });
}

/** Returns INVALID_REQUEST for one field. */
export function invalid(field: string, description: string): OncewardError {
  return refusal("INVALID_REQUEST", `${field} ${description}`, { violations: [{ field, description }] });
}

/**
 * Returns a refusal as the error of its own RPC. Any other error is a bug of this implementation, and is not changed.
 */
export function toConnectError(error: unknown): unknown {
  if (!(error instanceof OncewardError)) return error;
  const { reason, message, code, metadata, violations, retryDelayMs } = error;
  const info = { reason, domain: DOMAIN, metadata: { ...metadata } };
  const fieldViolations = violations.map(({ field, description }) => ({ field, description }));
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: info },
    ...(fieldViolations.length === 0 ? [] : [{ desc: BadRequestSchema, value: { fieldViolations } }]),
    ...(retryDelayMs === undefined
      ? []
      : [{ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(retryDelayMs) } }]),
  ]);
}

/** Returns a refusal as the reply to a batch's item. */
export function batchItemError(error: OncewardError): BatchItemError {
  const { reason, message, code, metadata, violations, retryDelayMs } = error;
  return create(BatchItemErrorSchema, {
    code: code ?? Code.Internal,
    reason: ErrorReason[reason as RefusalReason],
    message,
    metadata: { ...metadata },
    fieldViolations: violations.map(({ field, description }) => ({ field, description })),
    ...(retryDelayMs !== undefined && { retryDelay: durationFromMs(retryDelayMs) }),
  });
}
