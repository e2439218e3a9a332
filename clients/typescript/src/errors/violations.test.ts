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
  ["a wait that is not a number", { waitMs: Number.NaN }, /^waitMs must be a whole number of milliseconds/],
  ["an invalid judgement", { classifyError: "terminal" as never }, "classifyError must be a function"],
])("%s is refused by field and limit", (_, changed, violation) => {
  expect(violationsOf({ ...good, ...changed })).toEqual([
    typeof violation === "string" ? violation : expect.stringMatching(violation),
  ]);
});

test("a text is cut between characters, and comes out well-formed", () => {
  expect(truncateUtf8("aüb", 2)).toBe("a");
  expect(truncateUtf8("aüb", 3)).toBe("aü");
  expect(truncateUtf8("\u{1f600}\u{1f600}", 7)).toBe("\u{1f600}");
  expect(truncateUtf8("a\ud800", 10)).toBe("a\ufffd");
});
