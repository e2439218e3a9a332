import { create, toBinary } from "@bufbuild/protobuf";
import { OncewardError } from "../errors/errors.ts";
import {
  type BatchRequest,
  type BatchRequestItem,
  type BatchResponse,
  type BatchResponseItem,
  BatchResponseItemSchema,
  BatchResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from "../wire/limits.ts";
import { batchItemError, invalid, refusal } from "./refusal.ts";
import type { CallContext, SingleCalls } from "./single-calls.ts";

/** Carries out a Batch: its calls, one after another. */
export async function runBatch(
  single: SingleCalls,
  { items }: BatchRequest,
  context: CallContext,
): Promise<BatchResponse> {
  if (items.length === 0 || items.length > MAX_BATCH_ITEMS) {
    throw invalid("items", `must have 1-${MAX_BATCH_ITEMS} items, has ${items.length}`);
  }
  const fitting = createReplyBudget(items.length);
  const replies: BatchResponseItem[] = [];
  for (const item of items) replies.push(fitting(await runItem(single, item, context)));
  return create(BatchResponseSchema, { items: replies });
}

/** Returns an item's reply; the refusal of one item does not affect the others. */
async function runItem(
  single: SingleCalls,
  item: BatchRequestItem,
  context: CallContext,
): Promise<BatchResponseItem> {
  try {
    return create(BatchResponseItemSchema, { response: await runRequest(single, item, context) });
  } catch (error) {
    if (error instanceof OncewardError) return errorItem(error);
    throw error;
  }
}

async function runRequest(
  single: SingleCalls,
  { request }: BatchRequestItem,
  context: CallContext,
): Promise<BatchResponseItem["response"]> {
  switch (request.case) {
    case "claim":
      if (request.value.wait !== undefined) throw invalid("claim.wait", "is not allowed in a batch");
      return { case: "claim", value: await single.claim(request.value, context) };
    case "complete":
      return { case: "complete", value: await single.complete(request.value) };
    case "release":
      return { case: "release", value: await single.release(request.value) };
    case "extendLease":
      return { case: "extendLease", value: await single.extendLease(request.value) };
    case "lookup":
      return { case: "lookup", value: await single.lookup(request.value) };
    case undefined:
      throw invalid("request", "must be set");
  }
}

/** Returns a function that passes a reply if it fits into the rest of one message, and RESPONSE_TOO_LARGE otherwise. */
function createReplyBudget(items: number): (reply: BatchResponseItem) => BatchResponseItem {
  const tooLarge = errorItem(
    refusal("RESPONSE_TOO_LARGE", "The item's reply does not fit into the batch's; ask for it alone."),
  );
  // Room for every item's refusal is reserved first, so that a refusal always fits.
  const refusalBytes = sizeBytes(tooLarge);
  let bytesLeft = MAX_MESSAGE_BYTES - items * refusalBytes;
  return (reply) => {
    const extraBytes = Math.max(0, sizeBytes(reply) - refusalBytes);
    if (extraBytes > bytesLeft) return tooLarge;
    bytesLeft -= extraBytes;
    return reply;
  };
}

/** An upper bound of an item's tag and length. */
const FRAMING_BYTES = 8;

function sizeBytes(reply: BatchResponseItem): number {
  return toBinary(BatchResponseItemSchema, reply).byteLength + FRAMING_BYTES;
}

function errorItem(error: OncewardError): BatchResponseItem {
  return create(BatchResponseItemSchema, { response: { case: "error", value: batchItemError(error) } });
}
