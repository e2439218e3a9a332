import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
  AmbiguousError,
  InProgressError,
  OncewardError,
  ResultUnavailableError,
  TerminalError,
} from "../errors/errors.ts";
import { isRetryable } from "../errors/mapping.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";

/** What an RPC fails with, as google.rpc.Status has it, whatever library makes the error. */
export interface RpcFailure {
  /** As gRPC numbers the codes. */
  readonly code: number;
  readonly message: string;
  readonly details: readonly FailureDetail[];
}

/** A message of the failure's details. */
export interface FailureDetail {
  /** Its full name, such as `google.rpc.ErrorInfo`. */
  readonly type: string;
  readonly value: Uint8Array;
}

/** A refusal that the guard makes itself; its details say so to machines, as those of the service do. */
export function refusal(code: Code, reason: string, message: string, retryAfterMs?: number): RpcFailure {
  const details = [detail(ErrorInfoSchema, { reason, domain: "onceward" })];
  if (retryAfterMs !== undefined) {
    details.push(detail(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) }));
  }
  return { code, message, details };
}

/**
 * What the caller of the RPC is told of an error under which nothing ran. Of what is not its concern (a bad credential, a
 * bug), no more than that.
 */
export function refusalOf(error: unknown): RpcFailure {
  if (!(error instanceof OncewardError)) return unguardable();
  const { reason, retryDelayMs = 0 } = error;
  if (error instanceof InProgressError) {
    return refusal(Code.Aborted, reason, "A call with this idempotency key is in progress.", retryDelayMs);
  }
  if (error instanceof AmbiguousError) {
    const message = "It is not known whether an earlier call had its effect.";
    return refusal(Code.FailedPrecondition, reason, message);
  }
  if (error instanceof ResultUnavailableError) {
    return refusal(Code.AlreadyExists, reason, "The call was carried out; its response is gone.");
  }
  if (reason === "FINGERPRINT_MISMATCH") {
    return refusal(Code.FailedPrecondition, reason, "The idempotency key was used for another request.");
  }
  if (reason === "CLOSED" || isRetryable(error)) {
    const message = "It can't be known now whether the call was carried out.";
    return refusal(Code.Unavailable, reason, message, retryDelayMs);
  }
  return unguardable();
}

function unguardable(): RpcFailure {
  return refusal(Code.Internal, "INTERNAL", "The call could not be guarded.");
}

/** A failure as it is stored. */
export function terminalError({ code, message, details }: RpcFailure, cause: unknown): TerminalError {
  const stored = details.map(({ type, value }) => ({ type, value: base64Encode(value) }));
  return new TerminalError(message, { rpcCode: code, rpcDetails: stored }, { cause });
}

/** The inverse; undefined if the error was not made of an RPC's failure. */
export function storedFailure({ message, details }: TerminalError): RpcFailure | undefined {
  if (!isStored(details)) return undefined;
  const read = details.rpcDetails.map(({ type, value }) => ({ type, value: base64Decode(value) }));
  return { code: details.rpcCode, message, details: read };
}

interface Stored {
  readonly rpcCode: number;
  readonly rpcDetails: readonly { readonly type: string; readonly value: string }[];
}

function isStored(details: unknown): details is Stored {
  return typeof details === "object" && details !== null && "rpcCode" in details && "rpcDetails" in details;
}

function detail<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): FailureDetail {
  return { type: schema.typeName, value: toBinary(schema, create(schema, init)) };
}
