/**
 * The exports of both the Node and the web entry: nothing here needs Node. Messages are in `proto.ts`, the classes of
 * rarer errors in `admin.ts`.
 */

export * from "./errors/catalogue.ts";
export {
  AmbiguousError,
  type CatalogueReason,
  type ClaimRef,
  CompletionError,
  type ErrorDetails,
  InProgressError,
  OncewardError,
  type Reason,
  ResultUnavailableError,
  type SavedCheckpoint,
  TerminalError,
  type Violation,
} from "./errors/errors.ts";
export { type FingerprintOptions, fingerprintOf, fingerprintWithFiles } from "./keys/fingerprint.ts";
export { joinKey } from "./keys/keys.ts";
export { newKey } from "./keys/new-key.ts";
export type { Calls, ClaimInit } from "./run/calls.ts";
export type { Claim } from "./run/claim.ts";
export type { ClientOptions, CloseOptions, GuardOptions, Onceward } from "./run/client.ts";
export { bytesCodec, type Codec, type EncodedValue, jsonCodec, protobufCodec } from "./run/codec.ts";
export type { ObserverOptions, OncewardEvent, SpanAttributes, Trace } from "./run/events.ts";
export type { GuardOffOptions } from "./run/guard-switch.ts";
export type { Jsonify, NoJsonForm } from "./run/jsonify.ts";
export type { KeyState } from "./run/lookup.ts";
export type {
  CodecWrapOptions,
  JsonWrapOptions,
  Namespace,
  NamespaceDefaults,
  WrapOptions,
  Wrapped,
} from "./run/namespace.ts";
export { NoEffectError, OutcomeUnknownError } from "./run/outcome-unknown.ts";
export {
  didNotHappen,
  happened,
  type Resolution,
  type Resolve,
  stillOpen,
  type UnresolvedClaim,
  unknown,
} from "./run/resolution.ts";
export type { CodecRunOptions, JsonRunOptions, RunOptions, RunResult } from "./run/run-options.ts";
export type { AccessToken, CredentialOptions, TokenSource } from "./transport/credentials.ts";
export type { Api } from "./transport/unary-client.ts";
