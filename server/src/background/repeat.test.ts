import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRepeating } from "./repeat.ts";

beforeEach(() => {
  vi.useFakeTimers();
  // The middle of ±20 %.
  vi.spyOn(Math, "random").mockReturnValue(0.5);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Runs turns that end as listed, and then well, for a while; returns when each began, in milliseconds. */
async function turnsOf(outcomes: readonly ("fails" | "ends")[], maxBackoffMs?: number): Promise<number[]> {
  const begun: number[] = [];
  const startedAtMs = Date.now();
  const repeating = createRepeating({
    intervalMs: 100,
    ...(maxBackoffMs !== undefined && { maxBackoffMs }),
    async work() {
      begun.push(Date.now() - startedAtMs);
      if (outcomes[begun.length - 1] === "fails") throw new Error("timed out");
    },
    onFailed: () => {},
  });
  repeating.start();
  await vi.advanceTimersByTimeAsync(2000);
  await repeating.stop();
  return begun;
}

test("turns that fail one after another come at growing intervals, up to the longest, until one ends well", async () => {
  const begun = await turnsOf(["fails", "fails", "fails", "fails", "fails", "ends"], 300);
  expect(begun.slice(0, 8)).toEqual([100, 200, 400, 700, 1000, 1300, 1400, 1500]);
});

test("without a longest interval, turns that fail come at the same intervals as others", async () => {
  expect((await turnsOf(["fails", "fails", "fails", "ends"])).slice(0, 5)).toEqual([100, 200, 300, 400, 500]);
});
