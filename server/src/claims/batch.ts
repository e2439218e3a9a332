import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Answer, Call } from "../calls/call.ts";
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { Refusal } from "../domain/refusal.ts";
import { replyTooLarge } from "../domain/reply-room.ts";
import { Rejected, type Settled } from "../domain/settled.ts";
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
} from "../gen/onceward/v1/idempotency_pb.ts";
import { batchItemError } from "./batch-errors.ts";
import { roundsOf } from "./batch-rounds.ts";
import { turnsOf } from "./batch-turns.ts";
import { responseItemBytes } from "./response-bytes.ts";

/** An RPC that a batch may hold, of many requests at once; every one ends by itself, in its place. */
export type Batchable<Request, Response> = (
  requests: readonly Settled<Request>[],
  call: Call,
) => Answer<readonly Settled<Response>[]>;

/** The RPCs that a batch may hold, as its items name them. */
export interface BatchableCalls {
  readonly claim: Batchable<ClaimRequest, ClaimResponse>;
  readonly complete: Batchable<CompleteRequest, CompleteResponse>;
  readonly release: Batchable<ReleaseRequest, ReleaseResponse>;
  readonly extendLease: Batchable<ExtendLeaseRequest, ExtendLeaseResponse>;
  readonly lookup: Batchable<LookupRequest, LookupResponse>;
}

/**
 * Batch: the same calls, with the ones on one key made one after another, in order, and all keys at once. The order of
 * calls on different keys can't be told from outside, and so they travel to the database together.
 */
export function createBatch(
  calls: BatchableCalls,
): (request: BatchRequest, call: Call) => Promise<BatchResponse> {
  return async ({ items }, call) => {
    if (items.length === 0 || items.length > MAX_BATCH_ITEMS) {
      const description = `must have 1-${MAX_BATCH_ITEMS} items, has ${items.length}`;
      throw new Refusal("INVALID_REQUEST", `items ${description}`, {
        violations: [{ field: "items", description }],
      });
    }
    const replies = new Array<BatchResponseItem>(items.length);
    const fitting = createReplyBudget(items.length);
    const reply = (place: number, settled: Settled<BatchResponseItem>) => {
      const item = settled instanceof Rejected ? errorItem(call.refusalOf(settled.error)) : settled;
      replies[place] = fitting(item);
    };
    for (const round of roundsOf(items)) {
      const endings: Promise<unknown>[] = [];
      for (const [turn, places] of turnsOf(items, round).entries()) {
        if (turn > 0) await nextTurn();
        const ending = answerRound(calls, items, places, call, reply);
        if (ending !== undefined) endings.push(ending);
        // Awaited below, after the last turn.
        ending?.catch(() => {});
      }
      if (endings.length > 0) await Promise.all(endings);
    }
    return create(BatchResponseSchema, { items: replies });
  };
}

/** Answers the items at these places all at once; undefined if that is done already, as where memory answers. */
function answerRound(
  calls: BatchableCalls,
  items: readonly BatchRequestItem[],
  places: readonly number[],
  call: Call,
  reply: (place: number, settled: Settled<BatchResponseItem>) => void,
): Promise<unknown> | undefined {
  const late: Promise<void>[] = [];
  for (const [kind, own] of Map.groupBy(places, (place) => items[place]?.request.case)) {
    const replyAll = (settled: readonly Settled<unknown>[]) => {
      own.forEach((place, i) => {
        reply(place, itemOf(kind, settled[i]));
      });
    };
    const requests = own.map((place) => requestOf(items[place]));
    const answer =
      kind === undefined ? requests : (calls[kind] as Batchable<unknown, unknown>)(requests, call);
    if (answer instanceof Promise) late.push(answer.then(replyAll));
    else replyAll(answer);
  }
  return late.length === 0 ? undefined : Promise.all(late);
}

/** Undefined: of an item that says nothing, or what this version doesn't know. */
type Kind = BatchRequestItem["request"]["case"];

function requestOf(item: BatchRequestItem | undefined): Settled<unknown> {
  const request = item?.request;
  if (request?.case === undefined) return new Rejected(invalid("request", "must be set"));
  if (request.case === "claim" && request.value.wait !== undefined)
    return new Rejected(invalid("claim.wait", "is not allowed in a batch"));
  return request.value;
}

/** A kind's response is what an item of that name holds: `BatchableCalls` says so, and the compiler can't. */
function itemOf(kind: Kind, settled: Settled<unknown>): Settled<BatchResponseItem> {
  if (settled instanceof Rejected) return settled;
  const response = { case: kind, value: settled } as BatchResponseItem["response"];
  return { $typeName: "onceward.v1.BatchResponseItem", response };
}

const TOO_LARGE = errorItem(replyTooLarge());

/**
 * Answers a reply as it is if it fits into what is left of one message, and RESPONSE_TOO_LARGE otherwise. The store holds no
 * more results than that for a call while it waits for others (`ReplyRoom`), and reads no large one beyond it.
 */
function createReplyBudget(items: number): (reply: BatchResponseItem) => BatchResponseItem {
  // Room for every item's refusal is set aside first, so that a refusal always fits.
  const refusalBytes = responseItemBytes(TOO_LARGE);
  let bytesLeft = MAX_MESSAGE_BYTES - items * refusalBytes;
  return (reply) => {
    const extraBytes = Math.max(0, responseItemBytes(reply) - refusalBytes);
    if (extraBytes > bytesLeft) return TOO_LARGE;
    bytesLeft -= extraBytes;
    return reply;
  };
}

function errorItem(refusal: Refusal): BatchResponseItem {
  return create(BatchResponseItemSchema, { response: { case: "error", value: batchItemError(refusal) } });
}

function invalid(field: string, description: string): Refusal {
  return new Refusal("INVALID_REQUEST", `${field} ${description}`, { violations: [{ field, description }] });
}
