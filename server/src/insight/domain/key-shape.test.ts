import { describe, expect, test } from "vitest";
import { keyShape, keyStem } from "./key-shape.ts";

const AT_MS = Date.UTC(2026, 0, 31, 9, 30, 15, 250);

describe("a key", () => {
  test.each([
    ["1769851815", true],
    [`order-${AT_MS}`, true],
    [`${AT_MS}123:7`, true],
    [`charge_${AT_MS}000000`, true],
    [`order-${AT_MS - 59_000}`, true],
    [`order-${AT_MS - 61_000}`, false],
    ["order-1769851815x", false],
    ["order-17698518", false],
    ["report-2026-01-31", false],
    ["20260131093015", false],
    ["order-1000023456", false],
  ])("%s contains the claim's time: %s", (key, isTime) => {
    expect(keyShape(key, AT_MS).isTime).toBe(isTime);
  });

  test.each([
    ["order-7-retry-2", true, "order-7"],
    ["order-7:attempt3", true, "order-7"],
    ["order-7:1", false, "order-7"],
    ["order-7/try_12", true, undefined],
    ["order-10023", false, undefined],
    ["report-2026-01-31", false, undefined],
    ["tick-09:05", false, undefined],
    ["retry", false, undefined],
    ["order7", false, undefined],
  ])("%s names an attempt: %s; without its counter: %s", (key, isAttempt, stem) => {
    expect([keyShape(key, AT_MS).isAttempt, keyStem(key)]).toEqual([isAttempt, stem]);
  });

  test.each([
    ["00000000-0000-4000-8000-000000000000", "random"],
    ["mail/3f2504e0-4f89-41d3-9a0c-0305e82c3301", "random"],
    [uuid7(AT_MS - 900), "prompt"],
    [uuid7(AT_MS + 900), "prompt"],
    [uuid7(AT_MS - 1100), "earlier"],
    [uuid1(AT_MS - 900), "prompt"],
    [uuid1(AT_MS - 1100), "earlier"],
    ["00000000-0000-5000-8000-000000000000", "none"],
    ["00000000-0000-4000-0000-000000000000", "none"],
    ["order-1", "none"],
  ])("%s has a UUID that is %s", (key, uuid) => {
    expect(keyShape(key, AT_MS).uuid).toBe(uuid);
  });
});

function uuid7(atMs: number): string {
  const hex = atMs.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7abc-8def-0123456789ab`;
}

function uuid1(atMs: number): string {
  const ticks = ((BigInt(atMs) + 12_219_292_800_000n) * 10_000n).toString(16).padStart(15, "0");
  return `${ticks.slice(7)}-${ticks.slice(3, 7)}-1${ticks.slice(0, 3)}-8def-0123456789ab`;
}
