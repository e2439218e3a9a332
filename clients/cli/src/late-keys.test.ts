import { expect, test } from "vitest";
import { describeLateClaims } from "./late-keys.ts";

test("a person sees what each choice would have refused in the last week", () => {
  const counts = { claims: 1200n, lateKeysRefused: 0n, lateKeysGranted: 3n, withoutKeyTime: 40n };
  expect(describeLateClaims(counts)).toBe(`\
claims of the last 7d    1200
refused: key too old     0
granted: key too old     3     refuse and require-time refuse these
time of the key unknown  40    require-time refuses these
`);
});
