import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError } from "@connectrpc/connect";
import { Refusal } from "../domain/refusal.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  QuotaFailureSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import { type Status, StatusSchema } from "../gen/google/rpc/status_pb.ts";
import { codeOf } from "../records/batch/batch-errors.ts";

const DOMAIN = "onceward";

/** A request that breaks the transport's protocol. It has a code like all errors of gRPC, but no details. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code: Code;
  constructor(code: Code, message: string) {
    super(message);
    this.code = code;
  }
}

/** The error of a call that was refused as a whole, with the id that names the call in the log. */
export class FailedCall extends Error {
  override readonly name = "FailedCall";
  readonly error: Refusal | ProtocolError;
  readonly requestId: string;
  constructor(error: Refusal | ProtocolError, requestId: string) {
    super(error.message, { cause: error });
    this.error = error;
    this.requestId = requestId;
  }
}

/** The header in which a client may name its call, and in which a refusal names it. */
export const REQUEST_ID_HEADER = "x-request-id";

/** Returns a refusal of a whole message whose fields are not known. `description` follows "The message". */
export function malformed(description: string, cause?: unknown): Refusal {
  const violations = [{ field: "message", description }];
  return new Refusal("INVALID_REQUEST", `The message ${description}.`, { violations, cause });
}

/**
 * Returns the refusal of a message that is too large; `actualBytes` is undefined if not all of it has
 * arrived.
 */
export function tooLarge(maxBytes: number, actualBytes: number | undefined): Refusal {
  const actual = actualBytes === undefined ? "" : `, is ${actualBytes}`;
  return malformed(`must be at most ${maxBytes} bytes${actual}`);
}

/**
 * Converts an error for Connect, gRPC-Web and JSON; returns an error that is not a FailedCall as it is. Connect's and JSON's carry
 * the delay of a retry also as the header that HTTP clients and proxies know (RFC 9110, 10.2.3), in whole seconds.
 *
 * @param protocol as connect-node names it: "connect" also stands for JSON. The errors of "grpc-web" are trailers.
 */
export function toConnectError(failure: unknown, protocol: string): unknown {
  if (!(failure instanceof FailedCall)) return failure;
  const { error, requestId } = failure;
  const headers = new Headers({ [REQUEST_ID_HEADER]: requestId });
  if (error instanceof ProtocolError) return new ConnectError(error.message, error.code, headers);
  const { retryAfterMs } = error;
  if (retryAfterMs !== undefined && protocol === "connect")
    headers.set("retry-after", String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  return new ConnectError(error.message, codeOf(error.reason), headers, details(error, requestId));
}

/**
 * Converts a refusal for native gRPC, which sends the details as a google.rpc.Status in
 * `grpc-status-details-bin`.
 */
export function toStatus(refusal: Refusal, requestId: string | undefined): Status {
  return create(StatusSchema, {
    code: codeOf(refusal.reason),
    message: refusal.message,
    details: details(refusal, requestId).map(({ desc, value }) => anyPack(desc, create(desc, value))),
  });
}

interface Detail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

function details(
  { reason, metadata, violations, quota, retryAfterMs }: Refusal,
  requestId: string | undefined,
): Detail[] {
  const found = [detail(ErrorInfoSchema, { reason, domain: DOMAIN, metadata: { ...metadata } })];
  if (requestId !== undefined) found.push(detail(RequestInfoSchema, { requestId }));
  if (violations.length > 0) {
    const fieldViolations = violations.map(({ field, description }) => ({ field, description }));
    found.push(detail(BadRequestSchema, { fieldViolations }));
  }
  if (quota !== undefined) found.push(detail(QuotaFailureSchema, { violations: [quota] }));
  if (retryAfterMs !== undefined)
    found.push(detail(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) }));
  return found;
}

function detail<Desc extends DescMessage>(desc: Desc, value: MessageInitShape<Desc>): Detail {
  return { desc, value };
}
