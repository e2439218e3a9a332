import { expect, test } from "vitest";
import { hashKey } from "./key-hash.ts";
import { shardOf } from "./shard-map.ts";

const NODE = { id: 1, host: "127.0.0.1", port: 5432 };

test.each([
  ["", -1477818771],
  ["a", 1075015857],
  ["order-1", -1797687605],
  ["ten bytes!", 825437093],
  ["twelve bytes", 652846557],
  ["thirteen byte", -1367827268],
  ["Ωmega-£-ключ", -417231075],
  ["twenty-three bytes long", -630031914],
  ["00000000-0000-4000-8000-000000000000", -1797648853],
])("the hash of %j is Postgres' hashtext, %i", (key, hash) => {
  expect(hashKey(key)).toBe(hash);
});

test("a key lies in the last shard that does not begin above its hash", () => {
  const hash = hashKey("order-1");
  const shardsAt = (...minHashes: number[]) =>
    [-(2 ** 31), ...minHashes].map((minHash, id) => ({ id, minHash, node: NODE }));
  expect(shardOf(shardsAt(), "order-1").id).toBe(0);
  expect(shardOf(shardsAt(hash), "order-1").id).toBe(1);
  expect(shardOf(shardsAt(hash - 1, hash, hash + 1), "order-1").id).toBe(2);
  expect(shardOf(shardsAt(hash + 1), "order-1").id).toBe(0);
});
