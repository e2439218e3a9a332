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

test("callers that failed together don't retry together", async () => {
  const away = errorOf("DATABASE_UNAVAILABLE", "away", { code: Code.Unavailable });
  const calls = Array.from({ length: 50 }, () => callThatFails(away, away, away));
  const answers = calls.map(({ attempt }) => retrying(attempt, performance.now() + 10_000));
  await vi.advanceTimersByTimeAsync(10_000);
  await Promise.all(answers);
  expect(new Set(calls.map(({ madeAtMs }) => madeAtMs.at(-1))).size).toBeGreaterThan(10);
});
