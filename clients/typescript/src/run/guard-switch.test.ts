import { afterEach, expect, test, vi } from "vitest";
import { createTestingOnceward } from "../testing.ts";
import { createOnceward as createWebOnceward } from "../web.ts";
import type { Claim } from "./claim.ts";
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

test("in an outage, a run without a claim says so, and has the derived key of a claim", async () => {
  const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  await using testing = createTestingOnceward();
  const onEvent = vi.fn();
  await using onceward = createOnceward({ transport: testing.transport, onEvent });
  const derive = (claim: Claim) => claim.deriveKey("provider");
  const options = { ...operation, onUnavailable: "proceed", timeoutMs: 1 } as const;
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const run = () =>
    onceward.runDetailed(options, async (claim) => {
      await claim.saveCheckpoint("charged", { charge: "ch_1" });
      return [claim.guarded, claim.attempt, `${claim.fencingToken}`, claim.signal.aborted, derive(claim)];
    });
  const results = [await run(), await run()];
  testing.faults.clear();
  const value = [false, 0, "0", false, await onceward.run(operation, derive)];
  const result = { guarded: false, replayed: false, attempt: 0, fencingToken: 0n, value };
  expect(results).toMatchObject([result, result]);
  const unguarded = [{ namespace: "charges", type: "unguarded", reason: "DATABASE_UNAVAILABLE" }];
  expect(onEvent.mock.calls.slice(0, 2)).toEqual([unguarded, unguarded]);
  // Once per client; the events tell of each.
  expect(warning.mock.calls).toMatchObject([[expect.any(String), { code: "ONCEWARD_UNGUARDED" }]]);
});
