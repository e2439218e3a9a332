import { expect, onTestFinished, test, vi } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import type { OncewardEvent } from "./events.ts";
import { createOnceward } from "./onceward.ts";

const operation = { namespace: "charges", key: "order-1" };
/** Longer than a test may take. */
const TOO_LONG_MS = 600_000;

/** Returns a service in memory, and another client of it. */
function newWorld() {
  const testing = createTestingOnceward();
  const events: OncewardEvent[] = [];
  const onEvent = (event: OncewardEvent) => void events.push(event);
  const onceward = createOnceward({ transport: testing.transport, owner: "worker-2", onEvent });
  onTestFinished(() => onceward.close({ timeoutMs: 0 }));
  onTestFinished(() => testing.onceward.close({ timeoutMs: 0 }));
  return { testing, onceward, events };
}

test("a signal ends the wait for another holder with its own reason, and nothing ran", async () => {
  const { testing, onceward, events } = newWorld();
  await testing.onceward.api.claim({ ...operation, owner: "worker-1" });
  const leaving = new AbortController();
  const fn = vi.fn();
  const run = onceward.run({ ...operation, waitMs: TOO_LONG_MS, signal: leaving.signal }, fn);
  const ended = expect(run).rejects.toBe("the caller left");
  await vi.waitUntil(() => testing.waiting === 1, 30_000);
  leaving.abort("the caller left");
  await ended;
  expect(fn).not.toHaveBeenCalled();
  expect(events.at(-1)).toEqual({ namespace: "charges", type: "not-run", reason: "ABORTED" });
  await vi.waitUntil(() => testing.waiting === 0, 30_000);
});

test("a signal that has aborted claims nothing", async () => {
  const { testing, onceward } = newWorld();
  const signal = AbortSignal.abort(new Error("too late"));
  await expect(onceward.run({ ...operation, signal }, vi.fn())).rejects.toThrow("too late");
  expect(testing.records()).toEqual([]);
});

test("a signal that is not an AbortSignal is refused by name", async () => {
  const { onceward } = newWorld();
  await expect(onceward.run({ ...operation, signal: {} as never }, vi.fn())).rejects.toThrow(
    /^signal must be an AbortSignal/,
  );
});
