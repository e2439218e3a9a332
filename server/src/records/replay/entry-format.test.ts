import { createSecretKey } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openEntry, sealEntry } from "./entry-format.ts";

const NAME = "installation:0:1:7:chargesorder-1";
const KEY = createSecretKey("a pepper of thirty-two characters", "utf8");
const BYTES = Buffer.from(Array.from({ length: 60 }, (_, byte) => byte));
const ENTRY = sealEntry(NAME, BYTES, KEY);

test("opens the bytes that were sealed", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.uint8Array(), (name, content) => {
      expect(openEntry(name, sealEntry(name, content, KEY), KEY)).toEqual(Buffer.from(content));
    }),
  );
});

test("refuses an entry with any bit changed", () => {
  for (let bit = 0; bit < ENTRY.length * 8; bit++) {
    const altered = Buffer.from(ENTRY);
    altered.writeUInt8(altered.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(openEntry(NAME, altered, KEY)).toBeUndefined();
  }
});

test("refuses an entry that is truncated or extended", () => {
  for (let length = 0; length < ENTRY.length; length++) {
    expect(openEntry(NAME, ENTRY.subarray(0, length), KEY)).toBeUndefined();
  }
  expect(openEntry(NAME, Buffer.concat([ENTRY, Buffer.alloc(1)]), KEY)).toBeUndefined();
});

test("refuses an entry under another name", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      fc.pre(name !== NAME);
      expect(openEntry(name, ENTRY, KEY)).toBeUndefined();
    }),
  );
});

test("refuses bytes that moved between name and content", () => {
  const moved = Buffer.concat([ENTRY.subarray(0, 16), Buffer.from("1"), BYTES]);
  expect(openEntry(NAME.slice(0, -1), moved, KEY)).toBeUndefined();
});

test("refuses random bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (noise) => {
      expect(openEntry(NAME, Buffer.from(noise), KEY)).toBeUndefined();
    }),
  );
});

test("refuses an entry that was sealed with another secret", () => {
  expect(
    openEntry(NAME, ENTRY, createSecretKey("another pepper of as many charac.", "utf8")),
  ).toBeUndefined();
});
