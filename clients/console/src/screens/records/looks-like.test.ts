import { expect, it } from "vitest";
import { looksLike } from "./filters.ts";

it("a fingerprint and a request id are told from keys by their form", () => {
  expect(looksLike(` ${"0F".repeat(32)}\n`)).toBe("fingerprint");
  expect(looksLike("0f".repeat(31))).toBe("key");
  expect(looksLike("0197f3c8-1d2e-7abc-8def-0123456789ab")).toBe("request id");
  expect(looksLike("order-0197f3c8-1d2e-7abc-8def-0123456789ab")).toBe("key");
});
