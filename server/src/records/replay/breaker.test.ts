import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBreaker } from "./breaker.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/**
 * Creates a breaker that opens after three failures and probes every second; records its changes and probes.
 */
function open(works: () => boolean = () => false) {
  const changes: boolean[] = [];
  let probes = 0;
  const breaker = createBreaker({
    maxFailures: 3,
    pauseMs: 1000,
    onChange: (isOpen) => changes.push(isOpen),
    probe: async () => {
      probes++;
      return works();
    },
  });
  return { breaker, changes, probes: () => probes };
}

function fail({ failed }: { failed(): void }, times: number): void {
  for (let i = 0; i < times; i++) failed();
}

test("calls pass until three in a row have failed", () => {
  const { breaker, changes } = open();
  fail(breaker, 2);
  breaker.succeeded();
  fail(breaker, 2);
  expect([breaker.allows(), changes]).toEqual([true, []]);
  fail(breaker, 1);
  expect([breaker.allows(), changes]).toEqual([false, [true]]);
});

test("an open breaker refuses every call and probes every second", async () => {
  const { breaker, probes } = open();
  fail(breaker, 3);
  expect(probes()).toBe(0);
  await vi.advanceTimersByTimeAsync(5000);
  expect([breaker.allows(), probes()]).toEqual([false, 5]);
});

test("a successful probe closes the breaker and resets the count of failures", async () => {
  let works = false;
  const { breaker, changes, probes } = open(() => works);
  fail(breaker, 3);
  await vi.advanceTimersByTimeAsync(2000);
  works = true;
  await vi.advanceTimersByTimeAsync(1000);
  expect([breaker.allows(), changes, probes()]).toEqual([true, [true, false], 3]);
  fail(breaker, 2);
  expect(breaker.allows()).toBe(true);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(probes()).toBe(3);
});

test("outcomes of calls from before it opened change nothing", async () => {
  const { breaker, changes, probes } = open();
  fail(breaker, 3);
  breaker.succeeded();
  fail(breaker, 10);
  expect([breaker.allows(), changes]).toEqual([false, [true]]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(probes()).toBe(1);
});

test("a stopped breaker does not probe", async () => {
  const { breaker, probes } = open();
  fail(breaker, 3);
  breaker.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(probes()).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});
