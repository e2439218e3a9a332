import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { BatchHandler, Call } from "../../access/call.ts";
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import { Rejected, type Settled } from "../../domain/operation.ts";
import { invalidRequest, type Refusal } from "../../domain/refusal.ts";
import {
  type BatchRequest,
  type BatchRequestItem,
  type BatchResponse,
  type BatchResponseItem,
  BatchResponseItemSchema,
  BatchResponseSchema,
  type ClaimRequest,
  type ClaimResponse,
  type CompleteRequest,
  type CompleteResponse,
  type ExtendLeaseRequest,
  type ExtendLeaseResponse,
  type LookupRequest,
  type LookupResponse,
  type ReleaseRequest,
  type ReleaseResponse,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { replyTooLarge } from "../reply-room.ts";
import { batchItemError } from "./batch-errors.ts";
import { roundsOf } from "./batch-order.ts";
import { responseItemBytes } from "./response-bytes.ts";

/** The RPCs that a batch may contain, by the names of its items. */
export interface BatchHandlers {
  readonly claim: BatchHandler<ClaimRequest, ClaimResponse>;
  readonly complete: BatchHandler<CompleteRequest, CompleteResponse>;
  readonly release: BatchHandler<ReleaseRequest, ReleaseResponse>;
  readonly extendLease: BatchHandler<ExtendLeaseRequest, ExtendLeaseResponse>;
  readonly lookup: BatchHandler<LookupRequest, LookupResponse>;
}

/**
 * Returns the handler of Batch. Items on one key are executed one after another, in their order; items on different keys are
 * executed at once, because no caller can observe their order, and so they share statements.
 */
export function createBatch(
  handlers: BatchHandlers,
): (request: BatchRequest, call: Call) => Promise<BatchResponse> {
  return async ({ items }, call) => {
    if (items.length === 0 || items.length > MAX_BATCH_ITEMS) {
      throw invalidRequest("items", `must have 1-${MAX_BATCH_ITEMS} items, has ${items.length}`);
    }
    const replies = new Array<BatchResponseItem>(items.length);
    const fit = createReplyBudget(items.length, call);
    const reply = (index: number, settled: Settled<BatchResponseItem>) => {
      const item =
        settled instanceof Rejected ? errorItem(call.refusalOf(settled.error), call.requestId) : settled;
      replies[index] = fit(item);
    };
    for (const round of roundsOf(items)) {
      const pending: Promise<unknown>[] = [];
      for (const [chunkIndex, chunk] of round.entries()) {
        if (chunkIndex > 0) await nextTurn();
        const answering = answerChunk(handlers, items, chunk, call, reply);
        pending.push(answering);
        // Awaited below, after the last chunk.
        answering.catch(() => {});
      }
      await Promise.all(pending);
    }
    return create(BatchResponseSchema, { items: replies });
  };
}

/** Answers the items at these indexes at once. */
async function answerChunk(
  handlers: BatchHandlers,
  items: readonly BatchRequestItem[],
  indexes: readonly number[],
  call: Call,
  reply: (index: number, settled: Settled<BatchResponseItem>) => void,
): Promise<void> {
  const pending: Promise<void>[] = [];
  for (const [kind, own] of Map.groupBy(indexes, (index) => items[index]?.request.case)) {
    const replyAll = (settled: readonly Settled<unknown>[]) => {
      own.forEach((index, i) => {
        reply(index, itemOf(kind, settled[i]));
      });
    };
    const requests = own.map((index) => requestOf(items[index]));
    if (kind === undefined) replyAll(requests);
    else pending.push((handlers[kind] as BatchHandler<unknown, unknown>)(requests, call).then(replyAll));
  }
  await Promise.all(pending);
}

/** Undefined: the item is empty, or of a kind that this version doesn't know. */
type Kind = BatchRequestItem["request"]["case"];

function requestOf(item: BatchRequestItem | undefined): Settled<unknown> {
  const request = item?.request;
  if (request?.case === undefined) return new Rejected(invalidRequest("request", "must be set"));
  if (request.case === "claim" && request.value.wait !== undefined)
    return new Rejected(invalidRequest("claim.wait", "is not allowed in a batch"));
  return request.value;
}

/** The cast is safe: `BatchHandlers` gives each kind the response that an item of that name holds. */
function itemOf(kind: Kind, settled: Settled<unknown>): Settled<BatchResponseItem> {
  if (settled instanceof Rejected) return settled;
  const response = { case: kind, value: settled } as BatchResponseItem["response"];
  return { $typeName: "onceward.v1.BatchResponseItem", response };
}

const TOO_LARGE_BYTES = responseItemBytes(errorItem(replyTooLarge(), ""));

/**
 * Returns a function that returns a reply unchanged if it fits into the rest of one message, and RESPONSE_TOO_LARGE otherwise.
 * The store keeps no more results than that in memory for one call (`ReplyRoom`), and reads no large one beyond it.
 */
function createReplyBudget(
  items: number,
  call: Pick<Call, "requestId">,
): (reply: BatchResponseItem) => BatchResponseItem {
  // Room for a refusal of every item is reserved first, so that a refusal always fits.
  let bytesLeft = MAX_MESSAGE_BYTES - items * TOO_LARGE_BYTES;
  return (reply) => {
    const extraBytes = Math.max(0, responseItemBytes(reply) - TOO_LARGE_BYTES);
    if (extraBytes > bytesLeft) return errorItem(replyTooLarge(), call.requestId);
    bytesLeft -= extraBytes;
    return reply;
  };
}

function errorItem(refusal: Refusal, requestId: string): BatchResponseItem {
  return create(BatchResponseItemSchema, {
    response: { case: "error", value: batchItemError(refusal, requestId) },
  });
}
