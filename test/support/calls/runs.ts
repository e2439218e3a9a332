import { randomUUID } from "node:crypto";
import type { Onceward } from "@onceward/client";
import { expect, onTestFinished, vi } from "vitest";

/** Operations that `run` executes one after another, several at a time. */
export interface Runs {
  /** Resolves once so many more runs have finished; rejects with the first run that failed. */
  more(count: number): Promise<void>;
  /**
   * Lets the current runs finish, and resolves with the keys whose function did not run exactly once. Rejects
   * with the first run that failed.
   */
  stop(): Promise<readonly string[]>;
}

const CALLERS = 8;
/** Enough on a machine whose cores are each shared by many busy processes. */
const MORE_TIMEOUT_MS = 90_000;

/** Starts runs with a new key each. A run that fails fails the load: the client is to retry automatically. */
export function startRuns(onceward: Onceward): Runs {
  const effects = new Map<string, number>();
  let stopping = false;
  let done = 0;
  // A test that failed before `stop`.
  onTestFinished(() => {
    stopping = true;
  });

  async function runAll(): Promise<void> {
    while (!stopping) {
      const key = randomUUID();
      const value = await onceward.run({ namespace: "charges", key, fingerprint: key }, () => {
        effects.set(key, (effects.get(key) ?? 0) + 1);
        return key;
      });
      expect(value).toBe(key);
      done++;
    }
  }

  const callers = Promise.all(Array.from({ length: CALLERS }, runAll));
  // `more` and `stop` reject with it.
  callers.catch(() => {
    stopping = true;
  });
  return {
    async more(count) {
      const goal = done + count;
      // Ends with the callers: a wait that outlived the test would advance the stopped clocks of later ones.
      const reached = vi.waitUntil(() => stopping || done >= goal, { timeout: MORE_TIMEOUT_MS, interval: 2 });
      await Promise.race([reached, callers]);
    },
    async stop() {
      stopping = true;
      await callers;
      return [...effects].flatMap(([key, times]) => (times === 1 ? [] : [key]));
    },
  };
}
