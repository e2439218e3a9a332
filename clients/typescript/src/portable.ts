/** What every entry of the client has, wherever it runs: nothing here needs Node. */

export type { Api } from "./batch-sender.ts";
export type { Calls, ClaimInit } from "./calls.ts";
export type { ClientOptions, CloseOptions, Onceward } from "./client.ts";
export { bytesCodec, type Codec, type EncodedValue, jsonCodec, protobufCodec } from "./codec.ts";
export * from "./error-catalogue.ts";
export {
  AmbiguousError,
  type CatalogueReason,
  CompletionError,
  type ErrorClaim,
  type ErrorFacts,
  InProgressError,
  OncewardError,
  type Reason,
  ResultUnavailableError,
  type SavedCheckpoint,
  TerminalError,
  type Violation,
} from "./errors.ts";
export type { Observers, OncewardEvent, SpanFacts, Trace } from "./events.ts";
export { type FingerprintOptions, fingerprintOf, fingerprintWithFiles } from "./fingerprint.ts";
export * from "./gen/google/rpc/error_details_pb.ts";
export * from "./gen/onceward/v1/errors_pb.ts";
export * from "./gen/onceward/v1/idempotency_pb.ts";
export * from "./gen/onceward/v1/record_pb.ts";
export type { Claim } from "./held-claim.ts";
export { joinKey } from "./join-key.ts";
export type { Jsonify } from "./jsonify.ts";
export type { CodedRunOptions, RunOptions, UncodedRunOptions } from "./run-options.ts";
export type { RunResult } from "./run-result.ts";
