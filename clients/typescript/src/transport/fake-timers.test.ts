import { afterEach, expect, test, vi } from "vitest";

afterEach(() => {
  vi.useRealTimers();
  vi.resetModules();
});

test.each(["before", "after"])(
  "under fake timers, installed %s the client is loaded, runs don't wait for them",
  async (when) => {
    vi.resetModules();
    if (when === "before") vi.useFakeTimers();
    const { createTestingOnceward } = await import("../testing.ts");
    if (when === "after") vi.useFakeTimers();
    const { onceward, counts } = createTestingOnceward();
    const order = (id: number) =>
      onceward.run({ namespace: "charges", key: `order-${id % 3}` }, () => "charged");
    expect(await order(0)).toBe("charged");
    expect(await Promise.all([order(0), order(1), order(2)])).toEqual(Array(3).fill("charged"));
    expect(counts).toMatchObject({ granted: 3, replayed: 1 });
    await onceward.close();
  },
);
