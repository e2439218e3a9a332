import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError } from "@connectrpc/connect";
import { CODES } from "../claims/batch-errors.ts";
import { CATALOGUE, Refusal } from "../domain/refusal.ts";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import { type Status, StatusSchema } from "../gen/google/rpc/status_pb.ts";
import { MessageRefused } from "./grpc-messages.ts";

const DOMAIN = "onceward";

/** An error for Connect, gRPC-Web and JSON; what is neither a Refusal nor a MessageRefused is returned as it is. */
export function toConnectError(error: unknown): unknown {
  if (error instanceof MessageRefused) return new ConnectError(error.message, error.code);
  if (!(error instanceof Refusal)) return error;
  return new ConnectError(error.message, codeOf(error), undefined, details(error));
}

/** A refusal for native gRPC, where the details travel as a google.rpc.Status in `grpc-status-details-bin`. */
export function toStatus(refusal: Refusal): Status {
  return create(StatusSchema, {
    code: codeOf(refusal),
    message: refusal.message,
    details: details(refusal).map(({ desc, value }) => anyPack(desc, create(desc, value))),
  });
}

function codeOf({ reason }: Refusal): Code {
  return CODES[CATALOGUE[reason]];
}

interface Detail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

function details({ reason, metadata, violations, quota, retryAfterMs }: Refusal): Detail[] {
  const found = [detail(ErrorInfoSchema, { reason, domain: DOMAIN, metadata: { ...metadata } })];
  if (violations.length > 0) {
    const fieldViolations = violations.map(({ field, description }) => ({ field, description }));
    found.push(detail(BadRequestSchema, { fieldViolations }));
  }
  if (quota !== undefined) found.push(detail(QuotaFailureSchema, { violations: [quota] }));
  if (retryAfterMs !== undefined)
    found.push(detail(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) }));
  return found;
}

function detail<Desc extends DescMessage>(desc: Desc, value: MessageInitShape<Desc>): Detail {
  return { desc, value };
}
