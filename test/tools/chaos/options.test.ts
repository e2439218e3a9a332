import { expect, test } from "vitest";
import { readOptions } from "./options.ts";

const KNOWN = { postgres: ["redis-kill", "replica-kill"], citus: ["redis-kill", "worker-kill"] };

test("every option has a default", () => {
  const defaults = {
    durationMs: 120_000,
    seed: 1,
    faults: undefined,
    replicas: 3,
    out: "chaos.json",
    citus: false,
  };
  expect(readOptions([], KNOWN)).toEqual(defaults);
});

test("--faults takes known names, or none", () => {
  expect(readOptions(["--faults", "redis-kill, replica-kill"], KNOWN).faults).toEqual(KNOWN.postgres);
  expect(readOptions(["--faults", "none"], KNOWN).faults).toEqual([]);
  expect(() => readOptions(["--faults", "flood"], KNOWN)).toThrow(
    "some of redis-kill,replica-kill, not flood",
  );
});

test("--minutes, --seed and --replicas take numbers in their range", () => {
  expect(readOptions(["--minutes", "0.5", "--seed", "42"], KNOWN)).toMatchObject({
    durationMs: 30_000,
    seed: 42,
  });
  expect(() => readOptions(["--minutes", "ten"], KNOWN)).toThrow("--minutes takes a number");
  expect(() => readOptions(["--replicas", "0"], KNOWN)).toThrow("--replicas takes a number");
});

test("--citus has faults of its own", () => {
  const chosen = readOptions(["--citus", "--faults", "worker-kill"], KNOWN);
  expect(chosen).toMatchObject({ citus: true, faults: ["worker-kill"] });
  expect(() => readOptions(["--faults", "worker-kill"], KNOWN)).toThrow("not worker-kill");
});
