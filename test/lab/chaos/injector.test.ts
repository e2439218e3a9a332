import { expect, test } from "vitest";
import type { Fault } from "./faults/fault.ts";
import { clockMovesOf, injectFaults } from "./injector.ts";
import type { Rig } from "./rig.ts";

/** The faults of these tests do not use it. */
const rig = {} as Rig;
const schedule = (...faults: string[]) => faults.map((fault) => ({ atMs: 0, fault, seed: 1 }));

function recorder() {
  const events: string[] = [];
  const fault = (name: string, target: Fault["target"]): Fault => ({
    name,
    target,
    async inject() {
      events.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${name} healed`);
    },
  });
  return { events, fault };
}

test("faults of one target take turns, and those of another overlap with them", async () => {
  const { events, fault } = recorder();
  const flushed = Promise.withResolvers<void>();
  const kill: Fault = {
    name: "kill",
    target: "postgres",
    async inject() {
      // Heals only after the other target's fault has healed.
      await flushed.promise;
      events.push("kill healed");
    },
  };
  const flush: Fault = { name: "flush", target: "redis", inject: async () => flushed.resolve() };
  const scene = { rig, clients: [], signal: new AbortController().signal };
  const names = ["kill", "freeze", "flush"];
  const all = [kill, fault("freeze", "postgres"), flush];
  const { injections, failures } = await injectFaults(schedule(...names), all, scene, () => {});
  expect(injections.map(({ fault: name }) => name)).toEqual(["flush", "kill", "freeze"]);
  expect(failures).toEqual([]);
  expect(events).toEqual(["kill healed", "freeze begins", "freeze healed"]);
});

test("a fault that fails is reported, and the later ones are injected", async () => {
  const { events, fault } = recorder();
  const broken: Fault = {
    name: "kill",
    target: "redis",
    inject: () => Promise.reject(new Error("survived")),
  };
  const scene = { rig, clients: [], signal: new AbortController().signal };
  const all = [broken, fault("flush", "redis")];
  const { failures } = await injectFaults(schedule("kill", "flush"), all, scene, () => {});
  expect(failures).toEqual(["kill: survived"]);
  expect(events).toEqual(["flush begins", "flush healed"]);
});

test("no fault begins after a run is interrupted", async () => {
  const { events, fault } = recorder();
  const scene = { rig, clients: [], signal: AbortSignal.abort() };
  await injectFaults([{ atMs: 60_000, fault: "kill", seed: 1 }], [fault("kill", "redis")], scene, () => {});
  expect(events).toEqual([]);
});

test("a fault that waits for its turn when the run is over is left out", async () => {
  const { events, fault } = recorder();
  let over = false;
  const long: Fault = {
    name: "kill",
    target: "redis",
    async inject() {
      over = true;
    },
  };
  const scene = { rig, clients: [], signal: new AbortController().signal };
  const told: string[] = [];
  const all = [long, fault("flush", "redis")];
  await injectFaults(
    schedule("kill", "flush"),
    all,
    scene,
    (what) => told.push(what),
    () => over,
  );
  expect([told, events]).toEqual([["kill", "flush is left out: the run is over"], []]);
});

test("an injection names its victim", async () => {
  const freeze: Fault = {
    name: "freeze",
    target: "replica",
    inject: async ({ onVictim }) => onVictim({ replica: "replica-2" }),
  };
  const scene = { rig, clients: [], signal: new AbortController().signal };
  const { injections } = await injectFaults(schedule("freeze"), [freeze], scene, () => {});
  expect(injections).toMatchObject([{ fault: "freeze", target: "replica", replica: "replica-2" }]);
});

test("a fault that sets the database's clock is a move of the clock, also if it fails", async () => {
  const set: Fault = {
    name: "set",
    target: "postgres",
    async inject({ onVictim }) {
      onVictim({ clockAheadMs: 600_000 });
      throw new Error("the answer is lost");
    },
  };
  const { fault } = recorder();
  const { signal } = new AbortController();
  const scene = { rig, clients: [], signal };
  const schedules = schedule("set", "flush");
  const { injections } = await injectFaults(schedules, [set, fault("flush", "redis")], scene, () => {});
  const at = injections.find((injection) => injection.fault === "set");
  expect(clockMovesOf(injections)).toEqual([
    { fromMs: at?.startedAtMs, toMs: at?.healedAtMs, aheadMs: 600_000 },
  ]);
});
