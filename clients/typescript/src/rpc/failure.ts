import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { OncewardError, TerminalError } from "../errors/errors.ts";
import { classOf, isAboutKeyTime } from "../errors/mapping.ts";
import { DOMAIN } from "../errors/service-error.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";

/** The failure of an RPC, like google.rpc.Status, independent of the library that makes the error. */
export interface RpcFailure {
  /** The gRPC status code. */
  readonly code: number;
  readonly message: string;
  readonly details: readonly FailureDetail[];
}

/** A message in the failure's details. */
export interface FailureDetail {
  /** The message's full name, such as `google.rpc.ErrorInfo`. */
  readonly type: string;
  readonly value: Uint8Array;
}

/** Returns a refusal by the guard. Its details give machines the reason, as the service's errors do. */
export function refusal(code: Code, reason: string, message: string, retryAfterMs?: number): RpcFailure {
  const details = [detail(ErrorInfoSchema, { reason, domain: DOMAIN })];
  if (retryAfterMs !== undefined) {
    details.push(detail(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) }));
  }
  return { code, message, details };
}

/**
 * Returns the failure that the RPC's caller gets for an error under which the handler was not called. Errors that don't
 * concern the caller (a bad credential, a bug) become INTERNAL without details.
 */
export function refusalOf(error: unknown): RpcFailure {
  if (!(error instanceof OncewardError)) return unguardable();
  const { reason, retryDelayMs = 0 } = error;
  if (isAboutKeyTime(error)) {
    const message =
      "The idempotency key must contain the time at which it was made, as a UUID of version 7 does.";
    return refusal(Code.InvalidArgument, reason, message);
  }
  switch (classOf(error)) {
    case ReasonClass.WAIT:
      return refusal(Code.Aborted, reason, "A call with this idempotency key is in progress.", retryDelayMs);
    case ReasonClass.ASK: {
      const message = "It is not known whether an earlier call had its effect.";
      return refusal(Code.FailedPrecondition, reason, message);
    }
    case ReasonClass.GONE:
      return refusal(Code.AlreadyExists, reason, "The call was carried out; its response is gone.");
    case ReasonClass.REUSED:
      return refusal(Code.FailedPrecondition, reason, "The idempotency key was used for another request.");
    case ReasonClass.TOO_OLD: {
      const message = "The call is too old to be repeated: find out whether it was carried out.";
      return refusal(Code.FailedPrecondition, reason, message);
    }
    case ReasonClass.RETRY: {
      const message =
        "The idempotency key can't be checked now: this call was not carried out; an earlier one may have been.";
      return refusal(Code.Unavailable, reason, message, retryDelayMs);
    }
    default:
      return unguardable();
  }
}

function unguardable(): RpcFailure {
  return refusal(Code.Internal, "INTERNAL", "The call could not be guarded.");
}

/**
 * Returns whether a failure is a guard's or the service's, such as that of a method that calls another guarded method: it says
 * nothing about the outcome of the outer operation.
 */
export function isRefusal({ details }: RpcFailure): boolean {
  return details.some(({ type, value }) => {
    if (type !== ErrorInfoSchema.typeName) return false;
    try {
      return fromBinary(ErrorInfoSchema, value).domain === DOMAIN;
    } catch {
      // Another service sent something else under this name.
      return false;
    }
  });
}

/** Returns a failure in its stored form. */
export function terminalError({ code, message, details }: RpcFailure, cause: unknown): TerminalError {
  const stored = details.map(({ type, value }) => ({ type, value: base64Encode(value) }));
  return new TerminalError(message, { rpcCode: code, rpcDetails: stored }, { cause });
}

/** Returns the failure of its stored form; undefined if the error was not made by `terminalError`. */
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
