/** The published entry: the client, its errors, and the generated messages, schemas and enums. */

export type { Api } from "./batch-sender.ts";
export type { Calls, ClaimInit } from "./calls.ts";
export type { ConnectionOptions } from "./connection.ts";
export {
  AmbiguousError,
  CompletionError,
  InProgressError,
  OncewardError,
  type Reason,
  ResultUnavailableError,
  type SavedCheckpoint,
  TerminalError,
  type Violation,
} from "./errors.ts";
export { fingerprintOf } from "./fingerprint.ts";
export * from "./gen/google/rpc/error_details_pb.ts";
export * from "./gen/onceward/v1/errors_pb.ts";
export * from "./gen/onceward/v1/idempotency_pb.ts";
export * from "./gen/onceward/v1/record_pb.ts";
export type { Claim } from "./held-claim.ts";
export { createOnceward, type Onceward, type OncewardOptions } from "./onceward.ts";
export type { RunResult } from "./run.ts";
export type { RunOptions } from "./run-options.ts";
