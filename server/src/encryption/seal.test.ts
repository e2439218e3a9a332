import { createHmac, createSecretKey, hkdfSync, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SEALED_OVERHEAD_BYTES } from "../records/engine/record-values.ts";
import { deriveKey, open, seal } from "./seal.ts";

const SECRET = randomBytes(32);
const MASTER = { id: 1, secret: createSecretKey(SECRET) };
const KEY = deriveKey(MASTER, "record", "1:7:chargesorder-1");
const PLACE = "payload:1:7:chargesorder-1";
const SEALED = seal(KEY, Buffer.from("paid"), PLACE);

test("opens what was sealed, of any size", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: "binary" }), (value, place) => {
      const sealed = seal(KEY, value, place);
      expect(sealed.byteLength).toBe(value.byteLength + SEALED_OVERHEAD_BYTES);
      expect(open(KEY, sealed, place)).toEqual(Buffer.from(value));
    }),
  );
});

test("no nonce repeats", () => {
  const nonces = Array.from({ length: 5000 }, () => seal(KEY, Buffer.alloc(0), "").toString("hex", 0, 12));
  expect(new Set(nonces).size).toBe(nonces.length);
});

test("refuses a value with any bit changed", () => {
  for (let bit = 0; bit < SEALED.length * 8; bit++) {
    const altered = Buffer.from(SEALED);
    altered.writeUInt8(altered.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(open(KEY, altered, PLACE)).toBeUndefined();
  }
});

test("refuses a value that is truncated or extended", () => {
  for (let length = 0; length < SEALED.length; length++)
    expect(open(KEY, SEALED.subarray(0, length), PLACE)).toBeUndefined();
  expect(open(KEY, Buffer.concat([SEALED, Buffer.alloc(1)]), PLACE)).toBeUndefined();
});

test("refuses a value of another place, even under the same key", () => {
  expect(open(KEY, SEALED, "metadata:1:7:chargesorder-1")).toBeUndefined();
});

test("each record, purpose and configured key has its own key", () => {
  const other = { id: 1, secret: createSecretKey(randomBytes(32)) };
  const keys = [
    KEY,
    deriveKey(MASTER, "record", "2:7:chargesorder-1"),
    deriveKey(MASTER, "entry", "1:7:chargesorder-1"),
    deriveKey(other, "record", "1:7:chargesorder-1"),
  ];
  expect(new Set(keys.map(String)).size).toBe(keys.length);
  for (const key of keys.slice(1)) expect(open(key, SEALED, PLACE)).toBeUndefined();
});

test("a derived key is the first block of HKDF-Expand (RFC 5869)", () => {
  const info = "onceward:record:name";
  expect(deriveKey(MASTER, "record", "name")).toEqual(
    createHmac("sha256", SECRET)
      .update(info)
      .update(Buffer.from([1]))
      .digest(),
  );
  // HKDF of Node extracts first: expand by hand what it extracts, to compare with an independent HKDF.
  const extracted = createHmac("sha256", Buffer.alloc(32)).update(SECRET).digest();
  const whole = { id: 1, secret: createSecretKey(extracted) };
  expect(deriveKey(whole, "record", "name")).toEqual(Buffer.from(hkdfSync("sha256", SECRET, "", info, 32)));
});
