import { expect, test } from "vitest";
import { noShapes } from "./domain/key-quality.ts";
import { createWaitingSamples, type WaitingSample } from "./waiting-samples.ts";

/** The bounds of waiting-samples.ts. */
const MAX_KEYS_OF_SAMPLE = 1000;
const MAX_KEYS = 50_000;
const MAX_SAMPLES = 50_000;

function startWaiting() {
  let dropped = 0;
  const waiting = createWaitingSamples((count) => {
    dropped += count;
  });
  /** Adds an observed claim of a fingerprint, which is as deep as the zeros at the end of its number. */
  function observe(namespace: string, n: number, hasFingerprint = true) {
    const depth = 31 - Math.clz32(n & -n);
    const key = { key: `order-${n}`, fingerprint: new Uint8Array(32), depth, firstClaimedAtMs: 0 };
    waiting.add({
      ...{ tenantId: 1, namespace, kind: "fingerprint", shift: 0 },
      keys: hasFingerprint ? [key] : [],
      shapes: { ...noShapes(), claims: 1 },
    });
  }
  return { waiting, observe, dropped: () => dropped };
}

/** The number of claims that were counted, and of keys that wait. */
function sizeOf(samples: readonly WaitingSample[]) {
  return {
    counted: samples.reduce((sum, { shapes }) => sum + shapes.claims, 0),
    keys: samples.reduce((sum, { keys }) => sum + keys.size, 0),
  };
}

test("more keys of a sample than fit halve it: all claims are counted, and no key is dropped", () => {
  const { waiting, observe, dropped } = startWaiting();
  for (let n = 1; n <= 8 * MAX_KEYS_OF_SAMPLE; n++) observe("charges", n);
  const [taken, ...others] = waiting.take(1000);
  expect(others).toEqual([]);
  expect(taken).toMatchObject({ shift: 3, shapes: { claims: 8 * MAX_KEYS_OF_SAMPLE } });
  expect([...(taken?.keys.values() ?? [])].map(({ depth }) => depth >= 3)).toEqual(
    Array(MAX_KEYS_OF_SAMPLE).fill(true),
  );
  expect(dropped()).toBe(0);
});

test("a key waits once, as it ended last, also if it could not be stored before", () => {
  const { waiting } = startWaiting();
  const end = (endedAtMs: number) =>
    waiting.add({
      ...{ tenantId: 1, namespace: "charges", kind: "key", shift: 0 },
      keys: [{ key: "order-1", depth: 0, firstClaimedAtMs: 0, endedAtMs }],
    });
  end(1);
  const failed = waiting.take(1000);
  end(2);
  waiting.putBack(failed);
  end(3);
  end(2);
  const [taken] = waiting.take(1000);
  expect([...(taken?.keys.values() ?? [])]).toMatchObject([{ endedAtMs: 3 }]);
});

test("what could not be stored is added to what came since, and nothing is lost or counted twice", () => {
  const { waiting, observe, dropped } = startWaiting();
  for (let n = 1; n <= 100; n++) observe("charges", n);
  const failed = waiting.take(1000);
  for (let n = 101; n <= 150; n++) observe(n % 2 === 0 ? "charges" : "mails", n);
  waiting.putBack(failed);
  const taken = waiting.take(1000);
  expect(sizeOf(taken)).toEqual({ counted: 150, keys: 150 });
  expect(new Set(taken.flatMap(({ keys }) => [...keys.keys()])).size).toBe(150);
  expect(waiting.take(1000)).toEqual([]);
  expect(dropped()).toBe(0);
});

test("keys of all samples are bounded; further claims are counted by shape, and as dropped", () => {
  const { waiting, observe, dropped } = startWaiting();
  const full = MAX_KEYS / MAX_KEYS_OF_SAMPLE;
  for (let n = 0; n < MAX_KEYS; n++) observe(`namespace-${n % full}`, n + 1);
  for (let n = 0; n < 10; n++) observe("beyond", n + 1);
  expect(dropped()).toBe(10);
  // Room for a statement that fails: its keys are put back while others wait.
  const failed = waiting.take(1000);
  for (let n = 0; n < 1000; n++) observe(`later-${n % 10}`, n + 1);
  expect(dropped()).toBe(10);
  waiting.putBack(failed);
  expect(dropped()).toBe(10 + sizeOf(failed).keys);
  const taken: WaitingSample[] = [];
  for (let batch = waiting.take(1000); batch.length > 0; batch = waiting.take(1000)) taken.push(...batch);
  expect(sizeOf(taken)).toEqual({ counted: MAX_KEYS + 10 + 1000, keys: MAX_KEYS });
});

test("samples are bounded, and a statement takes a bounded number of them", () => {
  const { waiting, observe, dropped } = startWaiting();
  for (let n = 0; n < MAX_SAMPLES + 3; n++) observe(`namespace-${n}`, n + 1, false);
  expect(dropped()).toBe(3);
  const taken = waiting.take(1000);
  expect(taken).toHaveLength(1000);
  for (let n = 0; n < 999; n++) observe(`more-${n}`, n + 1, false);
  expect(dropped()).toBe(3);
  waiting.putBack(taken);
  expect(dropped()).toBe(3 + 999);
});
