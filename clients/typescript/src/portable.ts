/** What every entry of the client has, wherever it runs: nothing here needs Node. */

export type { Api } from "./transport/batch-sender.ts";
export type { Calls, ClaimInit } from "./run/calls.ts";
export type { ClientOptions, CloseOptions, Onceward } from "./run/client.ts";
export { bytesCodec, type Codec, type EncodedValue, jsonCodec, protobufCodec } from "./run/codec.ts";
export * from "./errors/catalogue.ts";
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
} from "./errors/errors.ts";
export type { Observers, OncewardEvent, SpanFacts, Trace } from "./run/events.ts";
export { type FingerprintOptions, fingerprintOf, fingerprintWithFiles } from "./run/fingerprint.ts";
export * from "./gen/google/rpc/error_details_pb.ts";
export * from "./gen/onceward/v1/errors_pb.ts";
export * from "./gen/onceward/v1/idempotency_pb.ts";
export * from "./gen/onceward/v1/record_pb.ts";
export type { Claim } from "./run/held-claim.ts";
export { joinKey } from "./run/join-key.ts";
export type { Jsonify } from "./run/jsonify.ts";
export type { CodedRunOptions, RunOptions, UncodedRunOptions } from "./run/run-options.ts";
export type { RunResult } from "./run/run-result.ts";
