import { expect, test } from "vitest";
import { makeTenant, type Principal } from "../../domain/tenant.ts";
import { createRecentRefusals, MAX_ENTRIES_OF_TENANT, sumRefused } from "./recent-refusals.ts";

function callerOf(id: number, actor: string): Principal {
  const cacheEpoch = { scope: "", askedAtMs: 0, databaseTimeMs: 0 };
  const tenant = makeTenant({ id, name: "shop", suspended: false, uid: "", cacheEpoch, overrides: {} });
  return { role: "CALLER", actor, goodUntilMs: Number.POSITIVE_INFINITY, namespaces: undefined, tenant };
}

function startAt0() {
  let atMs = 0;
  const refusals = createRecentRefusals(() => atMs);
  return {
    ...refusals,
    refuse: (namespace: string, outcome: string, principal = callerOf(7, "key-1")) =>
      refusals.declined({ namespace, key: "order-1" }, outcome, { principal, requestId: "" }),
    endSlotAt(ms: number) {
      atMs = ms;
      refusals.endSlot();
    },
  };
}

test("refused operations are counted by namespace, caller and reason, for a minute", () => {
  const recent = startAt0();
  for (const outcome of ["quota_rate", "quota_rate", "key_too_old", "completed", "in_progress"])
    recent.refuse("charges", outcome);
  recent.refuse("Not A Name", "invalid_request");
  // An error of the service refuses nothing.
  recent.refuse("charges", "database_unavailable");
  recent.endSlotAt(5_000);
  const entry = { actor: "key-1", namespace: "charges" };
  expect(recent.lastMinute()).toEqual({
    7: [
      { ...entry, reason: "QUOTA_RATE", operations: 2 },
      { ...entry, reason: "KEY_TOO_OLD", operations: 1 },
      { ...entry, namespace: "", reason: "INVALID_REQUEST", operations: 1 },
    ],
  });
  recent.endSlotAt(70_000);
  expect(recent.lastMinute()).toEqual({});
});

test("a tenant has a bounded number of entries, and leaves room for others", () => {
  const recent = startAt0();
  for (let index = 0; index < 2 * MAX_ENTRIES_OF_TENANT; index++) recent.refuse(`n${index}`, "quota_rate");
  recent.refuse("charges", "quota_rate", callerOf(8, "a".repeat(1_000)));
  recent.endSlotAt(5_000);
  const refused = recent.lastMinute();
  expect(refused[7]).toHaveLength(MAX_ENTRIES_OF_TENANT);
  expect(refused[8]?.[0]?.actor).toHaveLength(128);
});

test("the counts of replicas are added", () => {
  const entry = { namespace: "charges", actor: "key-1", reason: "QUOTA_RATE" };
  const other = { ...entry, actor: "key-2", operations: 4 };
  expect(sumRefused([{ ...entry, operations: 2 }, other, { ...entry, operations: 3 }])).toEqual([
    { ...entry, operations: 5 },
    other,
  ]);
});
