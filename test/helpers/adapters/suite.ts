import type { Onceward } from "@onceward/client";
import { createTestingOnceward, type TestingOnceward, type TestingPolicy } from "@onceward/client/testing";

/** The `test` of Vitest and `node:test`. */
export type TestFunction = (name: string, fn: () => Promise<void>) => unknown;

/** The options that a suite gives to an adapter. */
export const OPTIONS = { namespace: "charges", timeoutMs: 200 };

/** Runs a check with a service in memory, and closes what the check started. */
export async function inWorld<Fn, Started extends { close?(): Promise<unknown> }>(
  check: (world: TestingOnceward, start: (fn: Fn) => Promise<Started>) => Promise<void>,
  make: (onceward: Onceward, options: typeof OPTIONS, fn: Fn) => Started | Promise<Started>,
  policy: Partial<TestingPolicy> = {},
): Promise<void> {
  await using world = createTestingOnceward({ policy });
  const started: Started[] = [];
  try {
    await check(world, async (fn) => {
      const one = await make(world.onceward, OPTIONS, fn);
      started.push(one);
      return one;
    });
  } finally {
    for (const one of started) await one.close?.();
  }
}

/** A function that counts its calls. */
export function counter<Value>(fn: (count: number) => Value = () => undefined as Value) {
  const counted = {
    count: 0,
    call: () => {
      counted.count++;
      return fn(counted.count);
    },
  };
  return counted;
}

export function later<Value>(ms: number, value: Value): Promise<Value> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

/** @throws Error that shows both values as JSON if these differ. */
export function equal(actual: unknown, expected: unknown): void {
  const [is, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (is !== wanted) throw new Error(`expected ${wanted}, got ${is}`);
}
