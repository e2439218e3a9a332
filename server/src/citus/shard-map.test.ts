import { expect, test } from "vitest";
import { createTextHash } from "../domain/text-hash.ts";
import { shardOf } from "./shard-map.ts";

const NODE = { id: 1, host: "127.0.0.1", port: 5432 };

test("a key lies in the last shard that does not begin above its hash", () => {
  const hash = createTextHash(0n)("order-1");
  const shardsAt = (...minHashes: number[]) =>
    [-(2 ** 31), ...minHashes].map((minHash, id) => ({ id, minHash, node: NODE }));
  expect(shardOf(shardsAt(), "order-1").id).toBe(0);
  expect(shardOf(shardsAt(hash), "order-1").id).toBe(1);
  expect(shardOf(shardsAt(hash - 1, hash, hash + 1), "order-1").id).toBe(2);
  expect(shardOf(shardsAt(hash + 1), "order-1").id).toBe(0);
});
