import { expect, test } from "vitest";
import { deriveKey } from "./derive-key.ts";

test("a derived key never changes", () => {
  // A downstream that has seen these must go on recognising them: changing the scheme repeats effects.
  expect(deriveKey("charges", "order-1", "stripe")).toBe("1nzjXY8oX2gOMcXcOdZu6KAkr_-h2-1cPGiAhwdO4Nw");
  expect(deriveKey("charges", "bestellung-ü", "")).toBe("c99G7BCLVjjomjRolheDOGDoGznom6R0R32GGtYveZI");
});

test("a derived key is 43 characters that any downstream takes", () => {
  expect(deriveKey("charges", "x".repeat(255), "stripe")).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test("no two ways of dividing a text give the same key", () => {
  const parts = [
    ["ab", "c", "d"],
    ["a", "bc", "d"],
    ["a", "b", "cd"],
    ["a", "bcd", ""],
    ["a", "1:b", "cd"],
  ] as const;
  expect(new Set(parts.map(([namespace, key, label]) => deriveKey(namespace, key, label))).size).toBe(
    parts.length,
  );
});
