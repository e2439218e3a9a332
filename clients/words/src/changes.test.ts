import { expect, test } from "vitest";
import { typedName } from "./changes.ts";

test("a record is confirmed by its key, or by its namespace if the key is hard to type", () => {
  expect(typedName({ namespace: "charges", key: "order-7" })).toBe("order-7");
  for (const key of [" order-7", "\u202eorder", "é", "k".repeat(65)]) {
    expect(typedName({ namespace: "charges", key }), key).toBe("charges");
  }
});
