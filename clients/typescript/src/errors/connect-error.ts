import type { Code, ConnectError } from "@connectrpc/connect";

/**
 * Statuses of gRPC (https://grpc.io/docs/guides/status-codes), of Connect's type. Connect's own enum would load Connect,
 * a third of the client's modules, before the first call.
 */
export const CODE = {
  CANCELED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const satisfies Record<string, Code>;

/** Returns whether the value is an error of Connect, also of another copy of its package. */
export function isConnectError(value: unknown): value is ConnectError {
  return (
    value instanceof Error &&
    value.name === "ConnectError" &&
    "findDetails" in value &&
    typeof value.findDetails === "function"
  );
}
