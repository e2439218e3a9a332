/**
 * The published entry `@onceward/client/proto`: the messages, schemas and enums of every service, and the details of
 * their errors, for callers of `onceward.api` and of plain gRPC, and for browsers. The files in `proto/onceward/v1` document them.
 *
 * Messages that share a name with a type of TypeScript's library are renamed: `Record` is `RecordMessage`.
 *
 * @module
 */

export {
  type BadRequest,
  type BadRequest_FieldViolation,
  BadRequest_FieldViolationSchema,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type RequestInfo as RequestInfoMessage,
  RequestInfoSchema,
  type RetryInfo,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.ts";
export * from "./gen/onceward/v1/errors_pb.ts";
export { type FieldFacts, field as fieldFacts, Unit } from "./gen/onceward/v1/facts_pb.ts";
export * from "./gen/onceward/v1/idempotency_pb.ts";
export * from "./gen/onceward/v1/identity_pb.ts";
export * from "./gen/onceward/v1/operator_pb.ts";
export * from "./gen/onceward/v1/policy_pb.ts";
export {
  type Attempt,
  Attempt_Ending,
  Attempt_EndingSchema,
  AttemptSchema,
  type Checkpoint,
  CheckpointSchema,
  file_onceward_v1_record,
  type Record as RecordMessage,
  Record_State,
  Record_StateSchema,
  RecordSchema,
  type Result,
  Result_Kind,
  Result_KindSchema,
  ResultSchema,
} from "./gen/onceward/v1/record_pb.ts";
export * from "./gen/onceward/v1/tenant_admin_pb.ts";
export * from "./gen/onceward/v1/tenant_pb.ts";
