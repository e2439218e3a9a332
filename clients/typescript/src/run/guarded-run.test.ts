import { expect, onTestFinished, test, vi } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import { jsonCodec } from "./codec.ts";
import { guardedRun, pickRunOptions } from "./guarded-run.ts";

const operation = { namespace: "charges", key: "order-1", codec: jsonCodec };

function outcomeOf<T>(outcome: PromiseSettledResult<T>): T {
  if (outcome.status === "rejected") throw outcome.reason;
  return outcome.value;
}

test("in an outage after the handler, its answer is held for `answerAfterMs`, then stored", async () => {
  await using testing = createTestingOnceward();
  testing.faults.failNext("complete", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const options = { ...operation, answerAfterMs: 0 };
  const handle = async () => "charged";
  expect(await guardedRun(testing.onceward, options, handle, outcomeOf)).toEqual({
    kind: "ran",
    outcome: { status: "fulfilled", value: "charged" },
  });
  expect(await guardedRun(testing.onceward, { ...options, waitMs: 0 }, handle, outcomeOf)).toMatchObject({
    kind: "refused",
    error: { reason: "IN_PROGRESS" },
  });
  testing.faults.clear();
  await vi.waitFor(async () => {
    const repeat = await guardedRun(testing.onceward, { ...options, waitMs: 0 }, handle, outcomeOf);
    expect(repeat).toEqual({ kind: "replayed", value: "charged" });
  }, 30_000);
});

test("in an outage, an answer is held for 10 s by default", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  await using testing = createTestingOnceward();
  testing.faults.failNext("complete", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const times: number[] = [];
  const handle = async () => {
    times.push(Date.now());
    return "charged";
  };
  void guardedRun(testing.onceward, operation, handle, outcomeOf).then(handle);
  // The client's own timers are real.
  while (times.length === 0) await vi.advanceTimersByTimeAsync(1);
  await vi.advanceTimersByTimeAsync(20_000);
  // The repeat stores the answer, so that nothing waits for the clock.
  testing.faults.clear();
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  expect(times.map((time) => time - (times[0] ?? 0))).toEqual([0, 10_000]);
});

test("in an outage after the handler failed, its error is held for `answerAfterMs`", async () => {
  await using testing = createTestingOnceward();
  testing.faults.failNext("release", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const reason = new Error("declined");
  const handle = () => Promise.reject(reason);
  const options = { ...operation, answerAfterMs: 0 };
  expect(await guardedRun(testing.onceward, options, handle, outcomeOf)).toEqual({
    kind: "ran",
    outcome: { status: "rejected", reason },
  });
  testing.faults.clear();
});

test.each([-1, 0.5, Number.NaN, 2 ** 31])("an `answerAfterMs` of %s is refused by name", (answerAfterMs) => {
  expect(() => pickRunOptions({ namespace: "charges", answerAfterMs })).toThrow(/^answerAfterMs must be/);
});
