import { expect, test } from "vitest";
import { formatIdempotencyKey, parseIdempotencyKey } from "./idempotency-key.ts";

test.each([
  ['"8e03978e-40d5-43e8-bc93-6894a57f9324"', "8e03978e-40d5-43e8-bc93-6894a57f9324"],
  ["8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"],
  ['"with spaces, a comma; and a semicolon"', "with spaces, a comma; and a semicolon"],
  [String.raw`"a \"quoted\" back\\slash"`, String.raw`a "quoted" back\slash`],
  [String.raw`bare\slash`, String.raw`bare\slash`],
  [`"${"k".repeat(255)}"`, "k".repeat(255)],
])("%s carries the key %s", (header, key) => {
  expect(parseIdempotencyKey(header)).toBe(key);
});

test.each([
  ["empty", ""],
  ["an empty string", '""'],
  ["an open string", '"a'],
  ["a string with something after it", '"a";q=1'],
  ["two strings", '"a", "b"'],
  ["two bare keys", "a, b"],
  ["an escape that RFC 8941 has not", String.raw`"a\n"`],
  ["a control character", '"a\tb"'],
  ["no ASCII", '"ä"'],
  ["longer than a key", `"${"k".repeat(256)}"`],
])("a header is malformed that is %s", (_, header) => {
  expect(parseIdempotencyKey(header)).toBeUndefined();
});

test.each(["order-1", String.raw`a "quoted" back\slash`, " "])("%s is read as it was written", (key) => {
  expect(parseIdempotencyKey(formatIdempotencyKey(key))).toBe(key);
});

test.each(["", "ä", "a\nb"])("the key %j can't be written as a header", (key) => {
  expect(() => formatIdempotencyKey(key)).toThrow(TypeError);
});
