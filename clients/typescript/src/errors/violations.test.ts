import { expect, test } from "vitest";
import { checkRunOptions } from "../run/run-options.ts";
import { OncewardError } from "./errors.ts";
import { truncateUtf8 } from "./violations.ts";

function violationsOf(options: Parameters<typeof checkRunOptions>[0]): readonly string[] {
  try {
    checkRunOptions(options);
    return [];
  } catch (error) {
    if (!(error instanceof OncewardError)) throw error;
    expect(error.reason).toBe("INVALID_REQUEST");
    return error.violations.map(({ field, description }) => `${field} ${description}`);
  }
}

const good = { namespace: "charges", key: "order-1" };

test("values within the contract's limits are accepted", () => {
  expect(violationsOf(good)).toEqual([]);
  expect(violationsOf({ namespace: "a".repeat(63), key: "ü".repeat(127), leaseMs: 1000, waitMs: 0 })).toEqual(
    [],
  );
});

test.each([
  ["an empty key", { key: "" }, "key must be 1-255 bytes of UTF-8, is 0"],
  ["a key over 255 bytes", { key: "ü".repeat(128) }, "key must be 1-255 bytes of UTF-8, is 256"],
  ["a lone surrogate", { key: "a\udc00" }, "key must be well-formed Unicode, without lone surrogates"],
  ["a control character", { key: "a\u0085" }, "key must not contain control characters"],
  [
    "an upper case namespace",
    { namespace: "Charges" },
    "namespace must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit",
  ],
  ["a long owner", { owner: "x".repeat(129) }, "owner must be 0-128 bytes of UTF-8, is 129"],
  [
    "a time that is not a Date",
    { keyCreatedAt: Date.now() as never },
    "keyCreatedAt must be a valid Date of the years 1-9999",
  ],
  [
    "an invalid Date",
    { keyCreatedAt: new Date("yesterday") },
    "keyCreatedAt must be a valid Date of the years 1-9999",
  ],
  [
    "a time beyond Timestamps",
    { keyCreatedAt: new Date(8.64e15) },
    "keyCreatedAt must be a valid Date of the years 1-9999",
  ],
  ["a short lease", { leaseMs: 999 }, "leaseMs must be a whole number of milliseconds, 1000-86400000"],
  ["a wait that is not a number", { waitMs: Number.NaN }, /^waitMs must be a whole number of milliseconds/],
  [
    "an unknown way to meet an outage",
    { onUnavailable: "run" as never },
    'onUnavailable must be "throw" or "proceed"',
  ],
  ["an invalid judgement", { classifyError: "terminal" as never }, "classifyError must be a function"],
])("%s is refused by field and limit", (_, changed, violation) => {
  expect(violationsOf({ ...good, ...changed })).toEqual([
    typeof violation === "string" ? violation : expect.stringMatching(violation),
  ]);
});

test("every violation is named at once, also of values that no type allows", () => {
  const options = { namespace: undefined, key: 7 } as unknown as Parameters<typeof checkRunOptions>[0];
  expect(violationsOf(options)).toEqual([
    "namespace must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit",
    "key must be a string, is number",
  ]);
});

test("a text is cut between characters, and comes out well-formed", () => {
  expect(truncateUtf8("aüb", 2)).toBe("a");
  expect(truncateUtf8("aüb", 3)).toBe("aü");
  expect(truncateUtf8("\u{1f600}\u{1f600}", 7)).toBe("\u{1f600}");
  expect(truncateUtf8("a\ud800", 10)).toBe("a\ufffd");
});
