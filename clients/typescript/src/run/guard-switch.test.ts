import { afterEach, expect, test, vi } from "vitest";
import { createOnceward as createWebOnceward } from "../web.ts";
import type { OncewardEvent } from "./events.ts";
import { createOnceward } from "./onceward.ts";

const operation = { namespace: "charges", key: "order-1" };

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test.each([
  ["Node", createOnceward],
  ["web", createWebOnceward],
])(
  "with the guard off, a %s client runs every delivery without a service, and says so",
  async (_, create) => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const events: OncewardEvent[] = [];
    await using onceward = create({
      guard: "off-in-development",
      onEvent: (event) => void events.push(event),
    });
    expect(warning).toHaveBeenCalledWith(
      expect.stringMatching(/^The guard is off/),
      expect.objectContaining({ code: "ONCEWARD_GUARD_OFF" }),
    );
    const fn = vi.fn((claim: { readonly guarded: boolean }) => claim.guarded);
    for (let delivery = 0; delivery < 2; delivery++) {
      expect(await onceward.runDetailed(operation, fn)).toMatchObject({ value: false, guarded: false });
    }
    expect(fn).toHaveBeenCalledTimes(2);
    expect(events).toEqual(Array(2).fill({ namespace: "charges", type: "unguarded", reason: "GUARD_OFF" }));
    await expect(onceward.run({ ...operation, key: "" }, fn)).rejects.toThrow(/^key must be/);
    await expect(onceward.calls.lookup(operation)).rejects.toMatchObject({ reason: "GUARD_OFF" });
  },
);

test("in production the guard can't be switched off", () => {
  vi.stubEnv("NODE_ENV", "production");
  expect(() => createOnceward({ guard: "off-in-development" })).toThrow(/^guard must be "on" while NODE_ENV/);
});

test("another value of the switch is refused", () => {
  expect(() => createOnceward({ guard: "off" as never })).toThrow(/^guard must be "on" or/);
});
