import { Buffer } from "node:buffer";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { OncewardError } from "../errors/errors.ts";
import { StatusSchema } from "../gen/google/rpc/status_pb.ts";
import { IDEMPOTENCY_REPLAYED } from "../keys/idempotency-key.ts";
import type { FailureDetail } from "./failure.ts";
import type { Failures } from "./guard.ts";

/** The metadata in which gRPC carries a google.rpc.Status. */
const STATUS_DETAILS = "grpc-status-details-bin";
const TYPE_URL_PREFIX = "type.googleapis.com/";

/** Reads and makes the errors of grpc-js. Only the status' details of their metadata are stored. */
export const grpcFailures: Failures = {
  read(error) {
    // The code of a nested run's error says nothing about the call.
    if (typeof error !== "object" || error === null || error instanceof OncewardError) return undefined;
    const { code, details, message, metadata } = error as Partial<ServiceError>;
    if (typeof code !== "number") return undefined;
    return { code, message: details ?? message ?? "", details: readDetails(metadata) };
  },
  make({ code, message, details }, { replayed, cause }): Partial<ServiceError> {
    const metadata = new Metadata();
    if (replayed) metadata.set(IDEMPOTENCY_REPLAYED, "true");
    if (details.length > 0) metadata.set(STATUS_DETAILS, writeDetails(code, message, details));
    return { code, details: message, metadata, cause };
  },
};

function readDetails(metadata: Metadata | undefined): FailureDetail[] {
  const [bytes] = metadata?.get(STATUS_DETAILS) ?? [];
  if (!Buffer.isBuffer(bytes)) return [];
  const { details } = fromBinary(StatusSchema, bytes);
  return details.map(({ typeUrl, value }) => ({ type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value }));
}

function writeDetails(code: number, message: string, details: readonly FailureDetail[]): Buffer {
  const packed = details.map(({ type, value }) =>
    create(AnySchema, { typeUrl: TYPE_URL_PREFIX + type, value }),
  );
  return Buffer.from(toBinary(StatusSchema, create(StatusSchema, { code, message, details: packed })));
}
