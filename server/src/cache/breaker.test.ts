import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBreaker } from "./breaker.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** A breaker that opens after three failures and tries every second, and what it did. */
function open(works: () => boolean = () => false) {
  const changes: boolean[] = [];
  let tries = 0;
  const breaker = createBreaker({
    maxFailures: 3,
    pauseMs: 1000,
    onChange: (isOpen) => changes.push(isOpen),
    tryOut: async () => {
      tries++;
      return works();
    },
  });
  return { breaker, changes, tries: () => tries };
}

function fail({ failed }: { failed(): void }, times: number): void {
  for (let i = 0; i < times; i++) failed();
}

test("calls go through until three failed in a row", () => {
  const { breaker, changes } = open();
  fail(breaker, 2);
  breaker.succeeded();
  fail(breaker, 2);
  expect([breaker.allows(), changes]).toEqual([true, []]);
  fail(breaker, 1);
  expect([breaker.allows(), changes]).toEqual([false, [true]]);
});

test("while it is open no call goes through, and it is tried every second", async () => {
  const { breaker, tries } = open();
  fail(breaker, 3);
  expect(tries()).toBe(0);
  await vi.advanceTimersByTimeAsync(5000);
  expect([breaker.allows(), tries()]).toEqual([false, 5]);
});

test("it closes by itself once a try succeeds, and counts anew", async () => {
  let works = false;
  const { breaker, changes, tries } = open(() => works);
  fail(breaker, 3);
  await vi.advanceTimersByTimeAsync(2000);
  works = true;
  await vi.advanceTimersByTimeAsync(1000);
  expect([breaker.allows(), changes, tries()]).toEqual([true, [true, false], 3]);
  fail(breaker, 2);
  expect(breaker.allows()).toBe(true);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(tries()).toBe(3);
});

test("answers that were under way when it opened neither close it nor open it again", async () => {
  const { breaker, changes, tries } = open();
  fail(breaker, 3);
  breaker.succeeded();
  fail(breaker, 10);
  expect([breaker.allows(), changes]).toEqual([false, [true]]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(tries()).toBe(1);
});

test("once stopped it tries no more", async () => {
  const { breaker, tries } = open();
  fail(breaker, 3);
  breaker.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(tries()).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});
