import { expect, it } from "vitest";
import { degradedStates, degradedWords } from "./degraded.ts";

it("a degraded state is shown once, with its replicas", () => {
  const states = degradedStates([
    { id: "a", degraded: ["sweep_behind", "redis_bypassed"] },
    { id: "b", degraded: ["redis_bypassed"] },
    { id: "a", degraded: ["sweep_behind", "redis_bypassed"] },
    { id: "c", degraded: [] },
  ]);
  expect(states.map(({ state, replicaIds }) => [state, replicaIds])).toEqual([
    ["redis_bypassed", ["a", "b"]],
    ["sweep_behind", ["a"]],
  ]);
});

it("a state of a later version is named as it is", () => {
  expect(degradedWords("moon_full").title).toBe("moon_full");
});
