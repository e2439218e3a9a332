import { expect, test } from "vitest";
import { ExactNumber, fingerprintable, parseExact } from "./exact-json.ts";

test.each(["9007199254740993", "-1e400", "0.1234567890123456789", "123456789012345678901234567890"])(
  "%s is written as it was read",
  (source) => {
    const value = parseExact(`{"a":[${source}]}`);
    expect(value).toEqual({ a: [new ExactNumber(source)] });
    expect(JSON.stringify(value)).toBe(`{"a":[${source}]}`);
  },
);

test.each(["0", "-0", "1", "1.0", "1e2", "0.1", "1.50", "9007199254740991", "5e-324", "1E4"])(
  "%s is a number of JavaScript",
  (source) => {
    expect(parseExact(source)).toBe(Number(source));
  },
);

test("two numbers that JavaScript takes for one have different fingerprints", () => {
  const [first, second] = ["9007199254740993", "9007199254740992.5"].map((source) =>
    fingerprintable(parseExact(`[{"order":${source}}]`)),
  );
  expect(first).not.toEqual(second);
  expect(fingerprintable(parseExact('[{"order":7}]'))).toEqual([{ order: 7 }]);
});
