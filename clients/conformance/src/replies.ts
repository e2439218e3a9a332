import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type BatchRequestItem,
  type BatchResponseItem,
  BatchResponseItemSchema,
} from "../../typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Operation } from "./case.ts";
import type { Conversation } from "./conversation.ts";
import { toConnectError, toItemError } from "./refusals.ts";

/** Answers a call with an RPC of its own. @throws ConnectError. */
export async function answerCall<Request, Response>(
  conversation: Conversation,
  on: Operation,
  request: Request,
): Promise<Response> {
  const reply = await conversation.reply(on, request as never);
  switch (reply.kind) {
    case "response":
      return reply.message as Response;
    case "refused":
      throw toConnectError(reply.refusal);
    case "failed":
      throw reply.error;
    default:
      return reply satisfies never;
  }
}

/** Answers the items of a batch. @throws ConnectError for an answer that an item can't carry. */
export function answerBatch(
  conversation: Conversation,
  items: readonly BatchRequestItem[],
): Promise<BatchResponseItem[]> {
  return Promise.all(items.map((item) => answerItem(conversation, item)));
}

async function answerItem(conversation: Conversation, item: BatchRequestItem): Promise<BatchResponseItem> {
  const { request } = item;
  if (request.case === undefined) throw new ConnectError("an item without a request");
  const reply = await conversation.reply(request.case, request.value);
  switch (reply.kind) {
    case "response":
      return create(BatchResponseItemSchema, {
        response: { case: request.case, value: reply.message } as BatchResponseItem["response"],
      });
    case "refused": {
      const error = toItemError(reply.refusal);
      // A credential, and its tenant, are those of the whole RPC.
      const { code, reason } = reply.refusal;
      if (error === undefined || code === Code.Unauthenticated || reason === "TENANT_MOVING")
        throw toConnectError(reply.refusal);
      return create(BatchResponseItemSchema, { response: { case: "error", value: error } });
    }
    case "failed":
      throw reply.error;
    default:
      return reply satisfies never;
  }
}
