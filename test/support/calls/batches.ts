import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  BatchItemError,
  BatchRequestItemSchema,
  BatchResponseItem,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { IdempotencyClient } from "./clients.ts";

/** One request of a batch, such as `{ case: "lookup", value: ORDER }`. */
export type ItemRequest = NonNullable<MessageInitShape<typeof BatchRequestItemSchema>["request"]>;
/** The answer to an item of a batch. */
export type ItemResponse = BatchResponseItem["response"];

/** Makes the calls as one batch, and returns their responses in order. */
export async function runBatch(
  client: IdempotencyClient,
  requests: readonly ItemRequest[],
): Promise<ItemResponse[]> {
  const { items } = await client.batch({ items: requests.map((request) => ({ request })) });
  return items.map((item) => item.response);
}

/** Returns the error of an item. @throws if it has none. */
export function itemErrorOf(response: ItemResponse | undefined): BatchItemError {
  if (response?.case !== "error") throw new Error(`the item was answered ${response?.case}`);
  return response.value;
}
