import { Refusal } from "../../domain/refusal.ts";
import { FailedCall, ProtocolError, REQUEST_ID_HEADER, toStatus } from "../errors.ts";
import { type GrpcStatus, grpcStatus } from "../grpc-protocol.ts";

/**
 * Returns the headers of the status that ends a stream after a failure. Never throws: it runs where an error would be
 * an unhandled rejection, which ends the process. An error that nothing has refused a call with is a defect: INTERNAL,
 * and a warning of the process.
 */
export function failureStatus(failure: unknown): GrpcStatus {
  const { error, requestId } =
    failure instanceof FailedCall ? failure : { error: failure, requestId: undefined };
  const headers = requestId === undefined ? {} : { [REQUEST_ID_HEADER]: requestId };
  if (error instanceof ProtocolError) return { ...headers, ...grpcStatus(error.code, error.message) };
  const status = toStatus(asRefusal(error), requestId);
  return { ...headers, ...grpcStatus(status.code, status.message, status) };
}

/** Returns a refusal as it is, and another error as INTERNAL, with a warning of the process. */
export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  process.emitWarning(error instanceof Error ? error : String(error));
  return new Refusal("INTERNAL", "An internal error.", { cause: error });
}
