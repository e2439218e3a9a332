import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as typescript from "../../clients/typescript/src/wire/limits.ts";
import * as limits from "../../server/src/core/domain/limits.ts";
import { WIDEST_BOUNDS } from "../../server/src/core/domain/policy-bounds.ts";

// Clients name a mistake before they send it, and split a long wait: each has the service's limits in its own language.

const SERVICE: Readonly<Record<string, unknown>> = {
  ...limits,
  MAX_RESULT_BYTES: WIDEST_BOUNDS.maxResultBytes,
  MAX_LEASE_MS: WIDEST_BOUNDS.maxLeaseMs,
};
/** Limits of TypeScript's times and timers, which are not the service's. */
const OWN_OF_TYPESCRIPT = ["MAX_TIMER_MS", "MAX_TIME_MS", "MIN_TIME_MS"];
const UNITS: Readonly<Record<string, number>> = {
  "time.Second": 1000,
  "time.Minute": 60_000,
  "time.Hour": 3_600_000,
};

/** Returns the value of a product, such as "16 * 1024", "16 << 10" or "24 * time.Hour", which is in milliseconds. */
function valueOfProduct(product: string): number {
  const factors = product.split("*").map((text) => {
    const [number = "", shift = "0"] = text.trim().split(" << ");
    return UNITS[number] ?? Number(number.replaceAll("_", "")) * 2 ** Number(shift);
  });
  return factors.reduce((value, factor) => value * factor);
}

/** Returns the limits that a file defines, by the service's names of them. */
function limitsIn(path: string, definition: RegExp, nameOf: (own: string) => string) {
  const text = readFileSync(new URL(`../../clients/${path}`, import.meta.url), "utf8");
  const found = [...text.matchAll(definition)].map(([, own = "", product = ""]) => {
    return [nameOf(own), valueOfProduct(product)] as const;
  });
  return Object.fromEntries(found);
}

/** Fails unless the limits, one of which is `expected`, are the service's. */
function areOfService(found: Readonly<Record<string, unknown>>, expected = "MAX_KEY_BYTES") {
  expect(Object.keys(found)).toContain(expected);
  expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, SERVICE[name]])));
}

test("TypeScript's limits are the service's", () => {
  const shared = Object.entries(typescript).filter(([name]) => !OWN_OF_TYPESCRIPT.includes(name));
  areOfService(Object.fromEntries(shared));
});

test("Python's limits are the service's", () => {
  areOfService(limitsIn("python/src/onceward/_limits.py", /^([A-Z_]+) = (\d.*)$/gm, (name) => name));
});

test("Go's limits are the service's", () => {
  const nameOf = (own: string) => {
    const name = own.replace(/[A-Z]/g, "_$&").toUpperCase();
    return name in SERVICE ? name : `${name}_MS`;
  };
  areOfService(limitsIn("go/onceward/limits.go", /^\t(\w+) += (.+)$/gm, nameOf));
});

test("the in-memory services of Python and Go have the service's longest wait", () => {
  const python = limitsIn(
    "python/src/onceward/testing/_records.py",
    /^_(MAX_WAIT_MS) = (.+)$/gm,
    (name) => name,
  );
  const inGo = /"(wait)", request\.GetWait\(\), 0, (.+)\)$/gm;
  const go = limitsIn("go/onceward/oncewardtest/refusal.go", inGo, () => "MAX_WAIT_MS");
  for (const found of [python, go]) areOfService(found, "MAX_WAIT_MS");
});
