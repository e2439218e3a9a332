import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "../../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "../../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { BatchItemErrorSchema } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { ItemRequest, ItemResponse } from "./batches.ts";
import type { IdempotencyClient } from "./clients.ts";
import { describeError } from "./errors.ts";

/** Makes a batch's calls one after another, and returns the responses that the batch would return. */
export async function runOneByOne(
  client: IdempotencyClient,
  requests: readonly ItemRequest[],
): Promise<ItemResponse[]> {
  const responses: ItemResponse[] = [];
  for (const request of requests) {
    responses.push(await call(client, request).catch((error: unknown) => errorResponse(error)));
  }
  return responses;
}

async function call(client: IdempotencyClient, request: ItemRequest): Promise<ItemResponse> {
  switch (request.case) {
    case "claim":
      return { case: "claim", value: await client.claim(request.value) };
    case "complete":
      return { case: "complete", value: await client.complete(request.value) };
    case "release":
      return { case: "release", value: await client.release(request.value) };
    case "extendLease":
      return { case: "extendLease", value: await client.extendLease(request.value) };
    case "lookup":
      return { case: "lookup", value: await client.lookup(request.value) };
    default:
      throw new Error("a request that says nothing has no call of its own");
  }
}

function errorResponse(error: unknown): ItemResponse {
  const { reason, message, metadata } = describeError(error);
  const value = create(BatchItemErrorSchema, {
    code: error instanceof ConnectError ? error.code : Code.Unknown,
    reason: ErrorReason[reason as keyof typeof ErrorReason],
    message,
    metadata: { ...metadata },
    fieldViolations: violationsOf(error),
  });
  return { case: "error", value };
}

function violationsOf(error: unknown) {
  if (!(error instanceof ConnectError)) return [];
  return error
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, description }) => ({ field, description })),
    );
}
