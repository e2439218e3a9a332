import { Code, ConnectError } from "@connectrpc/connect";
import { readServiceError, type ServiceError } from "@onceward/errors/service-error.ts";

/** A failed call as a person sees it. */
export interface Failure extends ServiceError {
  readonly code: Code;
  readonly message: string;
}

/** The details of an error that the service did not make. */
const NO_DETAILS: ServiceError = {
  reason: "",
  metadata: {},
  violations: [],
  retryDelayMs: undefined,
  requestId: undefined,
};

/** Returns what is known about a failed call. `error` is anything that was thrown. */
export function readFailure(error: unknown): Failure {
  const connectError = ConnectError.from(error);
  const { code, rawMessage, metadata } = connectError;
  const details = readServiceError(connectError) ?? NO_DETAILS;
  const requestId = details.requestId ?? metadata.get("x-request-id") ?? undefined;
  return { ...details, code, message: rawMessage, requestId };
}

/** Returns whether the same call can succeed a moment later. Connect reports a failed `fetch` as Unknown. */
export function isTransient(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Unavailable || code === Code.Unknown || code === Code.DeadlineExceeded;
}
