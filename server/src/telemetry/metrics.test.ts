import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createTally } from "./metrics.ts";

test("every count is handed over once, under its labels", async () => {
  const registry = new Registry();
  const count = createTally(
    registry,
    "looks_total",
    "Looks.",
    ["layer", "result"],
    (layer: string, result) => ({ layer, result }),
  );
  const read = async () => (await registry.metrics()).split("\n").filter((line) => line.startsWith("looks"));
  expect(await read()).toEqual([]);
  count("memory", "hit");
  count("memory", "hit");
  count("redis", "hit");
  count("memory", "miss");
  const first = [
    'looks_total{layer="memory",result="hit"} 2',
    'looks_total{layer="memory",result="miss"} 1',
    'looks_total{layer="redis",result="hit"} 1',
  ];
  expect((await read()).toSorted()).toEqual(first);
  expect((await read()).toSorted()).toEqual(first);
  count("redis", "hit");
  expect((await read()).toSorted()).toEqual([
    ...first.slice(0, 2),
    'looks_total{layer="redis",result="hit"} 2',
  ]);
});
