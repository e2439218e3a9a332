import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { errorOf } from "../errors/mapping.ts";
import { retrying } from "./retry.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A call that fails as scripted, and then is answered; it notes when it was made. */
function callThatFails(...errors: readonly Error[]) {
  const left = [...errors];
  const startMs = performance.now();
  const madeAtMs: number[] = [];
  const attempt = async () => {
    madeAtMs.push(performance.now() - startMs);
    const error = left.shift();
    if (error !== undefined) throw error;
    return "answered";
  };
  return { attempt, madeAtMs };
}

const QUOTAS = ["QUOTA_RATE", "QUOTA_CONCURRENCY", "QUOTA_RECORDS", "QUOTA_BYTES"];

test.each(QUOTAS)(
  "a call that %s refuses is repeated, no sooner than the service asked for",
  async (quota) => {
    const refusal = errorOf(quota, "too much", { code: Code.ResourceExhausted, retryDelayMs: 700 });
    const { attempt, madeAtMs } = callThatFails(refusal, refusal);
    const call = retrying(attempt, performance.now() + 10_000);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await call).toBe("answered");
    const [, second = 0, third = 0] = madeAtMs;
    expect(second).toBeGreaterThanOrEqual(725);
    expect(third - second).toBeGreaterThanOrEqual(750);
  },
);

test("callers that failed together don't retry together", async () => {
  const away = errorOf("DATABASE_UNAVAILABLE", "away", { code: Code.Unavailable });
  const calls = Array.from({ length: 50 }, () => callThatFails(away, away, away));
  const answers = calls.map(({ attempt }) => retrying(attempt, performance.now() + 10_000));
  await vi.advanceTimersByTimeAsync(10_000);
  await Promise.all(answers);
  expect(new Set(calls.map(({ madeAtMs }) => madeAtMs.at(-1))).size).toBeGreaterThan(10);
});
