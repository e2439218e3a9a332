import { create, type MessageShape } from "@bufbuild/protobuf";
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from "../domain/limits.ts";
import { Refusal } from "../domain/refusal.ts";
import {
  type BatchRequest,
  type BatchRequestItem,
  type BatchResponse,
  type BatchResponseItem,
  BatchResponseItemSchema,
  BatchResponseSchema,
  type ClaimResponse,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { batchItemError } from "./batch-errors.ts";
import type { Answer, Call } from "./call.ts";
import type { SingleCalls } from "./idempotency.ts";
import { responseItemBytes } from "./response-bytes.ts";

/**
 * Batch: the same calls, with the ones on one key made one after another, in order, and all keys at once. The order of
 * calls on different keys can't be told from outside, and so they travel to the database together.
 */
export function createBatch(
  single: SingleCalls,
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
    const answer = ({ item, index }: Entry): Ending => {
      const reply = runItem(single, item, call);
      if (!(reply instanceof Promise)) {
        replies[index] = fitting(reply);
        return undefined;
      }
      return reply.then((late) => {
        replies[index] = fitting(late);
      });
    };
    await allOf(chainsOf(items), (chain) => inOrder(runsOf(chain), (run) => allOf(run, answer)));
    return create(BatchResponseSchema, { items: replies });
  };
}

/** What is under way; undefined if it has ended already, as where memory answers. */
type Ending = Promise<unknown> | undefined;

/** Begins all parts at once. */
function allOf<Part>(parts: readonly Part[], begin: (part: Part) => Ending): Ending {
  const underWay: Promise<unknown>[] = [];
  for (const part of parts) {
    const ending = begin(part);
    if (ending !== undefined) underWay.push(ending);
  }
  return underWay.length === 0 ? undefined : Promise.all(underWay);
}

/** Begins each part when the one before it has ended. */
function inOrder<Part>(parts: readonly Part[], begin: (part: Part) => Ending): Ending {
  for (const [i, part] of parts.entries()) {
    const ending = begin(part);
    if (ending !== undefined) return ending.then(() => inOrder(parts.slice(i + 1), begin));
  }
  return undefined;
}

interface Entry {
  readonly item: BatchRequestItem;
  /** Where its answer goes. */
  readonly index: number;
}

/** The items by record, each with those on the same record in their order. */
function chainsOf(items: readonly BatchRequestItem[]): Entry[][] {
  const chains = new Map<string, Entry[]>();
  for (const [index, item] of items.entries()) {
    const name = chainOf(item);
    const chain = chains.get(name);
    if (chain === undefined) chains.set(name, [{ item, index }]);
    else chain.push({ item, index });
  }
  return [...chains.values()];
}

/** Length-prefixed, so that no two records share a chain by the characters of their names. */
function chainOf({ request }: BatchRequestItem): string {
  if (request.case === undefined) return "";
  const { namespace, key } = request.value;
  return `${namespace.length}:${namespace}${key}`;
}

/**
 * Cuts a chain into what may be under way at once: claims in a row, or lookups in a row, because the store answers each
 * as if it had come right after the one before it; of everything else, one call.
 */
function runsOf(chain: readonly Entry[]): Entry[][] {
  const runs: Entry[][] = [];
  let previous: ItemRequest | undefined;
  for (const entry of chain) {
    const { request } = entry.item;
    if (previous !== undefined && joins(previous, request)) runs.at(-1)?.push(entry);
    else runs.push([entry]);
    previous = request;
  }
  return runs;
}

/**
 * A claim that accepts ambiguity has to look again where one that doesn't has its answer at once, and so would be
 * overtaken by those that come after it.
 */
function joins(previous: ItemRequest, next: ItemRequest): boolean {
  if (previous.case === "claim" && next.case === "claim") {
    return previous.value.acceptAmbiguous === next.value.acceptAmbiguous;
  }
  return previous.case === "lookup" && next.case === "lookup";
}

/** Answers one item. Never throws nor rejects: an item that meets a bug fails alone, too. */
function runItem(single: SingleCalls, { request }: BatchRequestItem, call: Call): Answer<BatchResponseItem> {
  const failed = (error: unknown) => errorItem(call.refusalOf(error));
  try {
    const response = runRequest(single, request, call);
    return response instanceof Promise ? response.then(itemOf, failed) : itemOf(response);
  } catch (error) {
    return failed(error);
  }
}

function itemOf(response: ItemResponse): BatchResponseItem {
  return { $typeName: "onceward.v1.BatchResponseItem", response };
}

type ItemRequest = BatchRequestItem["request"];
type ItemResponse = MessageShape<typeof BatchResponseItemSchema>["response"];

function runRequest(single: SingleCalls, request: ItemRequest, call: Call): Answer<ItemResponse> {
  switch (request.case) {
    case "claim": {
      if (request.value.wait !== undefined) throw invalid("claim.wait", "is not allowed in a batch");
      const answer = single.claim(request.value, call);
      return answer instanceof Promise ? answer.then(claimItem) : claimItem(answer);
    }
    case "complete":
      return single.complete(request.value, call).then((value) => ({ case: "complete", value }));
    case "release":
      return single.release(request.value, call).then((value) => ({ case: "release", value }));
    case "extendLease":
      return single.extendLease(request.value, call).then((value) => ({ case: "extendLease", value }));
    case "lookup":
      return single.lookup(request.value, call).then((value) => ({ case: "lookup", value }));
    case undefined:
      throw invalid("request", "must be set");
  }
}

function claimItem(value: ClaimResponse): ItemResponse {
  return { case: "claim", value };
}

const TOO_LARGE = errorItem(
  new Refusal("RESPONSE_TOO_LARGE", "The item's reply does not fit into the batch's; ask for it alone."),
);

/**
 * Answers a reply as it is if it fits into what is left of one message, and RESPONSE_TOO_LARGE otherwise. Replies are
 * judged as they come: one that doesn't fit is let go at once, and does not wait in memory for the others.
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
