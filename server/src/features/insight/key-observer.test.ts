import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { ObservedClaim } from "./first-claims.ts";
import { createObservedKeys, type WaitingNamespace } from "./key-observer.ts";

/** The bounds of key-observer.ts. */
const MAX_PER_NAMESPACE = 500;
const MAX_CLAIMS = 50_000;
const MAX_NAMESPACES = 50_000;

function claim(namespace: string, n: number, hasFingerprint = true): ObservedClaim {
  const fingerprint = hasFingerprint ? createHash("sha256").update(`${n}`).digest() : undefined;
  return { id: { tenantId: 1, namespace, key: `order-${n}` }, fingerprint, atMs: 0 };
}

function startObserving() {
  let dropped = 0;
  const observed = createObservedKeys(() => {
    dropped++;
  });
  return { observed, dropped: () => dropped };
}

/** The number of claims that were counted, and of those that are kept. */
function sizeOf(namespaces: readonly WaitingNamespace[]) {
  return {
    counted: namespaces.reduce((sum, { shapes }) => sum + shapes.claims, 0),
    kept: namespaces.reduce((sum, { claims }) => sum + claims.length, 0),
  };
}

test("more claims of a namespace than fit halve its sample: all are counted, and none is dropped", () => {
  const { observed, dropped } = startObserving();
  for (let n = 0; n < 4000; n++) observed.add(claim("charges", n), 0);
  const [waiting, ...others] = observed.take(1000);
  expect(others).toEqual([]);
  expect(waiting?.shapes.claims).toBe(4000);
  expect(waiting?.shift).toBeGreaterThanOrEqual(3);
  expect(waiting?.claims.length).toBeLessThanOrEqual(MAX_PER_NAMESPACE);
  expect(waiting?.claims.length).toBeGreaterThan(MAX_PER_NAMESPACE / 4);
  expect(waiting?.claims.every(({ depth }) => depth >= (waiting?.shift ?? 0))).toBe(true);
  expect(dropped()).toBe(0);
});

test("what could not be stored is added to what came since, and nothing is lost or counted twice", () => {
  const { observed, dropped } = startObserving();
  for (let n = 0; n < 100; n++) observed.add(claim("charges", n), 0);
  const failed = observed.take(1000);
  for (let n = 100; n < 150; n++) observed.add(claim(n % 2 === 0 ? "charges" : "mails", n), 0);
  observed.putBack(failed);
  const taken = observed.take(1000);
  expect(sizeOf(taken)).toEqual({ counted: 150, kept: 150 });
  expect(new Set(taken.flatMap(({ claims }) => claims.map(({ id }) => id.key))).size).toBe(150);
  expect(observed.take(1000)).toEqual([]);
  expect(dropped()).toBe(0);
});

test("claims of all namespaces are bounded; further ones are counted by shape, as dropped", () => {
  const { observed, dropped } = startObserving();
  const full = MAX_CLAIMS / MAX_PER_NAMESPACE;
  for (let n = 0; n < full * MAX_PER_NAMESPACE; n++) observed.add(claim(`namespace-${n % full}`, n), 0);
  for (let n = 0; n < 10; n++) observed.add(claim("beyond", n), 0);
  expect(dropped()).toBe(10);
  // Room for a statement that fails: its claims are put back while others wait.
  const failed = observed.take(1000);
  for (let n = 0; n < 1000; n++) observed.add(claim(`later-${n % 10}`, n), 0);
  expect(dropped()).toBe(10);
  observed.putBack(failed);
  expect(dropped()).toBe(10 + sizeOf(failed).kept);
  const taken: WaitingNamespace[] = [];
  for (let batch = observed.take(1000); batch.length > 0; batch = observed.take(1000)) taken.push(...batch);
  expect(sizeOf(taken)).toEqual({ counted: MAX_CLAIMS + 10 + 1000, kept: MAX_CLAIMS });
});

test("namespaces are bounded, and a statement takes a bounded number of them", () => {
  const { observed, dropped } = startObserving();
  for (let n = 0; n < MAX_NAMESPACES + 3; n++) observed.add(claim(`namespace-${n}`, n, false), 0);
  expect(dropped()).toBe(3);
  const taken = observed.take(1000);
  expect(taken).toHaveLength(1000);
  for (let n = 0; n < 999; n++) observed.add(claim(`more-${n}`, n, false), 0);
  expect(dropped()).toBe(3);
  observed.putBack(taken);
  expect(dropped()).toBe(3 + 999);
});
