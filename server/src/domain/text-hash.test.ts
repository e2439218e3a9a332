import { expect, test } from "vitest";
import { createTextHash } from "./text-hash.ts";

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
  expect(createTextHash(0n)(key)).toBe(hash);
});
