import { expect, test } from "vitest";
import { effectsOf } from "./fault-effects.ts";
import type { Injection } from "./injector.ts";
import type { Look } from "./load/watch.ts";

const look = (key: string, askedAtMs: number, grantedAtMs?: number): Look => ({
  client: "client-1",
  replica: "replica-1",
  key,
  askedAtMs,
  grantedAtMs,
});
const kill: Injection = { fault: "worker-kill", target: "postgres", startedAtMs: 1000, healedAtMs: 2000 };

test("claims count for a fault if sent while it lasted, by whether it hits their keys", () => {
  const looks = [
    look("hit", 900),
    look("hit", 1000, 1050),
    look("hit", 1100),
    look("hit", 1200, 2100),
    look("elsewhere", 1300, 1310),
    look("elsewhere", 1400),
    look("hit", 2000),
  ];
  expect(effectsOf(looks, [{ ...kill, keys: (key) => key === "hit" }])).toEqual([
    { fault: "worker-kill", refused: 2, granted: 1, grantedOthers: 1 },
  ]);
});

test("a fault of one replica says nothing of another", () => {
  expect(effectsOf([look("any", 1500)], [{ ...kill, replica: "replica-2" }])).toEqual([
    { fault: "worker-kill", refused: 0, granted: 0, grantedOthers: 0 },
  ]);
});
