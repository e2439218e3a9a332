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

/**
 * Runs turns that end as listed, and further ones that succeed. Returns the start time of each, in
 * milliseconds.
 */
async function turnsOf(
  outcomes: readonly ("fails" | "succeeds")[],
  maxBackoffMs?: number,
): Promise<number[]> {
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

test("turns that fail in a row run at growing intervals, up to the maximum, until one succeeds", async () => {
  const begun = await turnsOf(["fails", "fails", "fails", "fails", "fails", "succeeds"], 300);
  expect(begun.slice(0, 8)).toEqual([100, 200, 400, 700, 1000, 1300, 1400, 1500]);
});

test("without a maximum interval, turns that fail run at the same intervals as others", async () => {
  expect((await turnsOf(["fails", "fails", "fails", "succeeds"])).slice(0, 5)).toEqual([
    100, 200, 300, 400, 500,
  ]);
});

test("a stop's turns follow the last turn until nothing is left; a failure ends only its own", async () => {
  const done: string[] = [];
  const failures: unknown[] = [];
  const outcomes = [true, false, new Error("timed out"), true, false];
  const repeating = createRepeating({
    intervalMs: 100,
    turnsAtStop: 3,
    async work() {
      const outcome = outcomes.shift();
      done.push(String(outcome));
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
    onFailed: (error) => failures.push(error),
  });
  repeating.start();
  await repeating.stop();
  expect(done).toEqual(["true", "false", "Error: timed out", "true", "false"]);
  expect(failures).toEqual([new Error("timed out")]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(outcomes).toEqual([]);
});
