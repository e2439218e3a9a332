import { expect, test } from "vitest";
import { type IdleTime, idleTimeOf } from "./idle-time.ts";
import type { Injection } from "./injector.ts";
import type { Look } from "./load/watch.ts";
import { describeRecovery, isLate, recoveriesOf } from "./recovery.ts";

const look = (replica: string, askedAtMs: number, grantedAtMs?: number, key = "any"): Look => ({
  client: "client-1",
  replica,
  key,
  askedAtMs,
  grantedAtMs,
});
const kill: Injection = { fault: "postgres-kill", target: "postgres", startedAtMs: 1000, healedAtMs: 2000 };
const replicaKill: Injection = { ...kill, fault: "replica-kill", target: "replica", replica: "replica-1" };
const LATER_MS = 60_000;
const IDLE: IdleTime = { between: (fromMs, toMs) => toMs - fromMs };

function found(looks: readonly Look[], injections: readonly Injection[], watchedUntilMs = LATER_MS) {
  return recoveriesOf(looks, injections, watchedUntilMs, IDLE).map(({ fault, replica, afterMs }) => [
    fault,
    replica,
    afterMs,
  ]);
}

test("a recovery is the first grant after a fault's end, for each client and replica", () => {
  const looks = [look("replica-1", 1900), look("replica-1", 2100, 2300), look("replica-2", 1950, 2040)];
  expect(found(looks, [kill])).toEqual([
    ["postgres-kill", "replica-1", 300],
    ["postgres-kill", "replica-2", 40],
  ]);
});

test("a grant during the fault is not a recovery", () => {
  const looks = [look("replica-1", 1500, 1990), look("replica-1", 3000, 4100)];
  const [late] = recoveriesOf(looks, [kill], LATER_MS, IDLE);
  expect(late && isLate(late)).toBe(true);
  expect(late && describeRecovery(late)).toBe(
    "replica-1 served client-1 only 2100 ms after postgres-kill healed, with a processor idle for 2100 ms",
  );
});

test("a recovery after two seconds is in time, and one that never comes is late", () => {
  const [inTime] = recoveriesOf([look("replica-1", 2100, 4000)], [kill], LATER_MS, IDLE);
  const [never] = recoveriesOf([look("replica-1", 2100)], [kill], LATER_MS, IDLE);
  expect([inTime, never].map((recovery) => recovery && isLate(recovery))).toEqual([false, true]);
  expect(never && describeRecovery(never)).toBe(
    "replica-1 served client-1 never again after postgres-kill healed, with a processor idle for 58000 ms",
  );
});

test("time without an idle processor does not make a recovery late", () => {
  const twoProcessors = (...idleMs: readonly number[]) =>
    idleTimeOf(idleMs.map((ms, index) => ({ fromMs: 1000 * index, toMs: 1000 * (index + 1), idleMs: ms })));
  const lateness = (grantedAtMs: number | undefined, ...idleMs: readonly number[]) =>
    recoveriesOf([look("replica-1", 2100, grantedAtMs)], [kill], 9000, twoProcessors(...idleMs)).map(isLate);
  // Of each second that both processors were idle, one counts.
  expect(lateness(4500, 0, 0, 2000, 2000, 0)).toEqual([false]);
  expect(lateness(4500, 0, 0, 2000, 2000, 100)).toEqual([true]);
  expect(lateness(undefined, 0, 0, 0, 0, 500, 500, 500, 400)).toEqual([false]);
  expect(lateness(undefined, 0, 0, 0, 0, 500, 500, 500, 501)).toEqual([true]);
});

test("a fault of one replica or client is not judged for the others", () => {
  const looks = [look("replica-1", 2100, 2200), look("replica-2", 2100, 2200)];
  expect(found(looks, [replicaKill])).toEqual([["replica-kill", "replica-1", 200]]);
  const freeze: Injection = { ...kill, fault: "holder-freeze", target: "client", client: "client-2" };
  expect(found(looks, [freeze])).toEqual([]);
});

test("if another fault breaks the same in between, its end counts", () => {
  const looks = [look("replica-1", 4100, 4200), look("replica-2", 2100, 2200), look("replica-2", 4100, 4150)];
  const again = { ...replicaKill, startedAtMs: 3900, healedAtMs: 4000 };
  expect(found(looks, [kill, again])).toEqual([
    ["replica-kill", "replica-1", 200],
    ["postgres-kill", "replica-2", 200],
  ]);
  const later = { ...again, startedAtMs: 4001, healedAtMs: 5000 };
  expect(found(looks, [kill, later])).toContainEqual(["postgres-kill", "replica-1", 2200]);
});

test("a fault of Redis is not an excuse", () => {
  const freeze: Injection = {
    ...kill,
    fault: "redis-freeze",
    target: "redis",
    startedAtMs: 1500,
    healedAtMs: 9000,
  };
  expect(found([look("replica-1", 4100, 4200)], [kill, freeze])).toContainEqual([
    "postgres-kill",
    "replica-1",
    2200,
  ]);
});

test("a fault that healed less than two seconds before the watch ended is not judged", () => {
  expect(found([look("replica-1", 2100, 2200)], [kill], 3999)).toEqual([]);
  expect(found([look("replica-1", 2100, 2200)], [kill], 4000)).toEqual([["postgres-kill", "replica-1", 200]]);
});

test("after a fault of some keys, grants of other keys are not a recovery", () => {
  const looks = [look("replica-1", 2050, 2100, "elsewhere"), look("replica-1", 2050, 2400, "hit")];
  expect(found(looks, [{ ...kill, keys: (key) => key === "hit" }])).toEqual([
    ["postgres-kill", "replica-1", 400],
  ]);
});
