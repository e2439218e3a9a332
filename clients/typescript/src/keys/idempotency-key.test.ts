import { expect, test } from "vitest";
import { formatIdempotencyKey, parseIdempotencyKey } from "./idempotency-key.ts";

test.each(["order-1", String.raw`a "quoted" back\slash`, " "])("%s is read as it was written", (key) => {
  expect(parseIdempotencyKey(formatIdempotencyKey(key))).toBe(key);
});

test.each(["", "ä", "a\nb"])("the key %j can't be written as a header", (key) => {
  expect(() => formatIdempotencyKey(key)).toThrow(TypeError);
});
