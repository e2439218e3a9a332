import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createSuspendWatch } from "./suspend-watch.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function begin() {
  let suspendedMs = 0;
  const onResumed = vi.fn();
  const watch = createSuspendWatch({
    onResumed,
    processNowMs: () => performance.now(),
    uptimeNowMs: () => 1_000_000 + performance.now() + suspendedMs,
  });
  watch.start();
  const run = (ms: number) => vi.advanceTimersByTime(ms);
  const suspend = (ms: number) => {
    suspendedMs += ms;
  };
  return { watch, onResumed, run, suspend };
}

test("a machine that runs was not suspended", () => {
  const { onResumed, run } = begin();
  run(3_600_000);
  expect(onResumed).not.toHaveBeenCalled();
});

test("a suspend is noticed once, within 250 ms of running", () => {
  const { onResumed, run, suspend } = begin();
  run(1100);
  suspend(3_600_000);
  run(250);
  expect(onResumed.mock.calls).toEqual([[3_600_000]]);
  run(60_000);
  expect(onResumed).toHaveBeenCalledTimes(1);
});

test("short suspends add up", () => {
  const { onResumed, run, suspend } = begin();
  for (let n = 0; n < 6; n++) {
    suspend(100);
    run(250);
  }
  expect(onResumed.mock.calls).toEqual([[600]]);
});

test("nothing is noticed after the stop", () => {
  const { watch, onResumed, run, suspend } = begin();
  watch.stop();
  suspend(3_600_000);
  run(1000);
  expect(onResumed).not.toHaveBeenCalled();
});
