import { expect, test } from "vitest";
import type { Call } from "../access/call.ts";
import { createDeclinedKeys, MAX_CALLS } from "./declined-keys.ts";

/** Returns keys, and a function that declines calls on one of them. */
function startKeys() {
  let atMs = 0;
  const keys = createDeclinedKeys(() => ++atMs);
  function decline(
    key: string,
    { outcome = "completed", tenantId = 1, times = 1, namespace = "charges" } = {},
  ) {
    const principal = { role: "CALLER", actor: "key-1", tenant: { id: tenantId } };
    for (let n = 0; n < times; n++)
      keys.declined({ namespace, key }, outcome, { principal, requestId: `request-${atMs}` } as Call);
  }
  return { keys, decline };
}

test("a key is counted by what its calls got, from the first to the last", () => {
  const { keys, decline } = startKeys();
  decline("order-1", { times: 2 });
  decline("order-1", { outcome: "quota_rate" });
  decline("order-1", { outcome: "database_unavailable" });
  decline("order-2", { namespace: "not a namespace" });
  const [only, ...others] = keys.take(10);
  expect(others).toEqual([]);
  expect(only).toMatchObject({
    id: { tenantId: 1, namespace: "charges", key: "order-1" },
    counts: { replayed: 2, over_quota: 1 },
    firstAtMs: 1,
    lastAtMs: 3,
  });
  expect(keys.take(10)).toEqual([]);
});

test("of the calls of a busy key some are kept, and refusals before duplicates", () => {
  const { keys, decline } = startKeys();
  decline("order-1", { times: 1000 });
  decline("order-1", { outcome: "fingerprint_mismatch" });
  const [{ counts, calls } = { counts: {}, calls: [] }] = keys.take(1);
  expect(counts).toMatchObject({ replayed: 1000, mismatched: 1 });
  expect(calls).toHaveLength(MAX_CALLS);
  expect(calls.map(({ outcome }) => outcome)).toContain("mismatched");
});

test("keys with refusals are taken first, then the busiest, in turns by tenant; the others wait", () => {
  const { keys, decline } = startKeys();
  decline("once");
  decline("often", { times: 5 });
  decline("refused", { outcome: "fingerprint_mismatch" });
  decline("of-another", { tenantId: 2 });
  const take = (max: number) => keys.take(max).map(({ id }) => id.key);
  expect(take(2)).toEqual(["refused", "of-another"]);
  expect(take(2)).toEqual(["often", "once"]);
});

test("a tenant has room for a quarter of the keys, and makes room when its keys keep others out", () => {
  const { keys, decline } = startKeys();
  for (let n = 0; n < 2000; n++) decline(`order-${n}`);
  expect(keys.take(5000)).toHaveLength(1024);
  for (let n = 0; n < 2000; n++) decline(`order-${n}`);
  decline("of-another", { tenantId: 2 });
  expect(keys.take(2).map(({ id }) => id.key)).toEqual(["order-0", "of-another"]);
  expect(keys.take(5000)).toEqual([]);
  decline("order-2001");
  expect(keys.take(5000).map(({ id }) => id.key)).toEqual(["order-2001"]);
  for (let tenantId = 1; tenantId <= 5; tenantId++)
    for (let n = 0; n < 1000; n++) decline(`order-${n}`, { tenantId });
  expect(keys.take(5000)).toHaveLength(4096);
});
