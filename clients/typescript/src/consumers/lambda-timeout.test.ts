import { expect, onTestFinished, test, vi } from "vitest";
import { type LambdaRunner, untilTimeout } from "./lambda-timeout.ts";

const context = { getRemainingTimeInMillis: () => 600 };

/** A client with calls that still run after their runs have ended. */
function runnerWith(...background: Promise<void>[]): LambdaRunner {
  return { calls: { background: new Set(background) } } as unknown as LambdaRunner;
}

function fakeTimers() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
}

test("the signal aborts half a second before the timeout", async () => {
  fakeTimers();
  const ended = Promise.withResolvers<void>();
  let signal: AbortSignal | undefined;
  const running = untilTimeout(runnerWith(), context, (given) => {
    signal = given;
    return ended.promise;
  });
  await vi.advanceTimersByTimeAsync(99);
  expect(signal?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(signal?.reason).toMatchObject({ reason: "ABORTED" });
  ended.resolve();
  await running;
});

test("claims are released before the handler settles, which waits for them for 400 ms", async () => {
  fakeTimers();
  const released = Promise.withResolvers<void>();
  const settled = vi.fn();
  const running = untilTimeout(runnerWith(released.promise), context, async () => {}).then(settled);
  await vi.advanceTimersByTimeAsync(399);
  expect(settled).not.toHaveBeenCalled();
  released.resolve();
  await running;

  const stuck = untilTimeout(runnerWith(new Promise(() => {})), context, async () => "charged");
  await vi.advanceTimersByTimeAsync(400);
  expect(await stuck).toBe("charged");
});

test("a handler that has settled leaves no timer", async () => {
  fakeTimers();
  await untilTimeout(runnerWith(), context, async () => {});
  expect(vi.getTimerCount()).toBe(0);
});
