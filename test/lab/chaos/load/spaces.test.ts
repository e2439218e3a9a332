import { expect, test } from "vitest";
import { createRandom } from "../../../support/random.ts";
import { NAMESPACES, pickAdministered, pickTarget, SPACES, TENANTS } from "./spaces.ts";

const draw = (seed: number, elapsedMs: number, count: number) => {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => pickTarget(random, elapsedMs, "r"));
};

test("clients use the same keys without communication", () => {
  const names = (seed: number) => new Set(draw(seed, 60_000, 500).map((target) => JSON.stringify(target)));
  const [one, other] = [names(1), names(2)];
  expect([...one].filter((name) => other.has(name)).length).toBeGreaterThan(50);
});

test("every space is used, and its keys begin with its prefix", () => {
  const targets = draw(1, 60_000, 2000);
  expect(new Set(targets.map(({ tenant, namespace }) => `${tenant}/${namespace}`)).size).toBe(SPACES.length);
  expect(targets.every(({ key, prefix }) => key.startsWith(`${prefix}r-`))).toBe(true);
});

test("two namespaces have keys that are equal once names are joined with dots", () => {
  const joined = NAMESPACES.map(({ namespace, prefix }) => `${namespace}.${prefix}`);
  expect(joined.filter((name) => name.startsWith("charges.x."))).toHaveLength(2);
});

test("only the first tenant is administered", () => {
  const random = createRandom(3);
  const tenants = Array.from({ length: 100 }, () => pickAdministered(random, 60_000, "r").tenant);
  expect(new Set(tenants)).toEqual(new Set([TENANTS[0]]));
});
