import { expect, test } from "vitest";
import { similarName } from "./similar-names.ts";

test.each([
  ["paymnets", "payments"],
  ["payment", "payments"],
  ["payroll", undefined],
  ["payments", undefined],
  ["shard-2", undefined],
  ["us", undefined],
])("%s is similar to %s", (name, similar) => {
  expect(similarName(name, ["orders", "payments", "shard-1", "eu"])).toBe(similar);
});
