import { OncewardError } from "@onceward/client";
import { expect, test } from "vitest";
import { measure } from "./measure.ts";

const LONG_MS = 60_000;
const never = new AbortController().signal;

test("a phase ends with its last operation, and counts what was done", async () => {
  const seen: number[] = [];
  const operate = async (index: number) => void seen.push(index);
  const figure = await measure({ name: "claims", maxOperations: 5, operate }, 3, LONG_MS, never);
  expect(seen).toEqual([0, 1, 2, 3, 4]);
  expect(figure).toMatchObject({ name: "claims", callers: 3, done: 5, refused: {}, errors: {} });
  expect(figure.p99Ms).toBeGreaterThanOrEqual(figure.p50Ms);
});

test("refusals of quotas and other errors are counted by reason", async () => {
  const operate = async (index: number) => {
    if (index === 0) throw new OncewardError("QUOTA_RATE", "too fast");
    if (index === 1) throw new OncewardError("DATABASE_UNAVAILABLE", "down");
  };
  const figure = await measure({ name: "claims", maxOperations: 4, operate }, 1, LONG_MS, never);
  expect(figure).toMatchObject({ done: 2, refused: { QUOTA_RATE: 1 }, errors: { DATABASE_UNAVAILABLE: 1 } });
});

test("any other error ends the phase for all callers", async () => {
  let begun = 0;
  const operate = async (index: number) => {
    begun += 1;
    if (index === 2) throw new Error("not completed");
  };
  await expect(measure({ name: "claims", maxOperations: 900, operate }, 2, LONG_MS, never)).rejects.toThrow(
    "not completed",
  );
  await new Promise(setImmediate);
  expect(begun).toBeLessThan(6);
});

test("an abort ends the phase at once, also while a caller waits after a refusal", async () => {
  const stop = new AbortController();
  const operate = async () => {
    setImmediate(() => stop.abort());
    throw new OncewardError("QUOTA_RATE", "too fast", { retryDelayMs: LONG_MS });
  };
  const figure = await measure({ name: "claims", maxOperations: 9, operate }, 2, LONG_MS, stop.signal);
  expect(figure).toMatchObject({ done: 0, p50Ms: 0, refused: { QUOTA_RATE: 2 } });
});
