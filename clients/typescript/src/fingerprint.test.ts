import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { OncewardError } from "./errors.ts";
import { fingerprintOf } from "./fingerprint.ts";

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hex(value: unknown): string {
  return Buffer.from(fingerprintOf(value)).toString("hex");
}

test("the example of RFC 8785 section 3.2.2 is hashed in its canonical form", () => {
  const input = JSON.parse(`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`);
  const canonical =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
  expect(hex(input)).toBe(sha256(canonical));
});

test("members are sorted by UTF-16 code units, as in RFC 8785 section 3.2.3", () => {
  const names = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
  const sorted = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"];
  const canonical = `{${sorted.map((name) => `${JSON.stringify(name)}:0`).join(",")}}`;
  expect(hex(Object.fromEntries(names.map((name) => [name, 0])))).toBe(sha256(canonical));
});

test("equal requests have equal fingerprints, however they were put together", () => {
  expect(hex({ amount: 100, to: { name: "Ada", iban: "X" } })).toBe(
    hex({ to: { iban: "X", note: undefined, name: "Ada" }, amount: 1e2 }),
  );
  expect(hex({ amount: 100 })).not.toBe(hex({ amount: "100" }));
});

test("32 bytes are taken as they are, and no other number of bytes is taken", () => {
  const bytes = new Uint8Array(32).fill(7);
  expect(fingerprintOf(bytes)).toBe(bytes);
  expect(() => fingerprintOf(Buffer.from("a whole body"))).toThrow(/32 of a SHA-256, is 12/);
});

const circular: { self?: unknown } = {};
circular.self = circular;

test.each([
  ["a BigInt", { amount: 1n }],
  ["a circular value", circular],
  ["NaN", { amount: Number.NaN }],
  ["an infinity", [Number.POSITIVE_INFINITY]],
  ["a lone surrogate", { name: "\ud800" }],
  ["a function", () => {}],
])("%s is refused by name", (_, value) => {
  expect(() => fingerprintOf(value)).toThrow(OncewardError);
  expect(() => fingerprintOf(value)).toThrow(
    expect.objectContaining({
      reason: "INVALID_REQUEST",
      violations: [expect.objectContaining({ field: "fingerprint" })],
    }),
  );
});
