import { expect, test } from "vitest";
import type { NewAuditEvent } from "../database/tenants/audit-events.ts";
import { createDenialGroups, type Denial } from "./denials.ts";

const DENIAL: Denial = {
  tenant: { id: 1, name: "shop" },
  actor: "key",
  action: "UpdateTenant",
  target: "",
  denial: "ROLE_DENIED",
  reason: "",
  before: undefined,
  after: undefined,
  requestId: "first",
};

function takeAll(groups: ReturnType<typeof createDenialGroups>): readonly NewAuditEvent[] {
  return groups.take(Number.POSITIVE_INFINITY);
}

function callsOf(events: readonly NewAuditEvent[]): number {
  return events.reduce((sum, { calls }) => sum + calls, 0);
}

test("the first call of a group is due at once; the following ones are one event", () => {
  const groups = createDenialGroups();
  groups.add(DENIAL);
  expect(takeAll(groups)).toEqual([{ ...DENIAL, calls: 1 }]);
  for (let i = 0; i < 5; i++) groups.add({ ...DENIAL, requestId: "later" });
  expect(groups.hasDue()).toBe(false);
  groups.allDue();
  expect(takeAll(groups)).toEqual([{ ...DENIAL, calls: 5 }]);
});

test("calls of other tenants, actors, RPCs, targets and reasons are other groups", () => {
  const groups = createDenialGroups();
  const others = [
    { tenant: { id: 2, name: "other" } },
    { actor: "other" },
    { action: "GetTenant" },
    { target: "namespace mails" },
    { denial: "NAMESPACE_DENIED" },
  ];
  for (const other of [{}, ...others]) groups.add({ ...DENIAL, ...other });
  expect(takeAll(groups)).toHaveLength(6);
});

test("an actor's calls beyond its bound are counted by reason, and no call is lost", () => {
  const groups = createDenialGroups();
  for (let i = 0; i < 100; i++) groups.add({ ...DENIAL, target: `namespace n-${i}` });
  const events = takeAll(groups);
  expect(events).toHaveLength(9);
  expect(events.at(-1)).toMatchObject({ actor: "key", action: "", target: "", calls: 92 });
});

test("a tenant's calls beyond its bound are counted for no actor, and other tenants have theirs", () => {
  const groups = createDenialGroups();
  for (let i = 0; i < 1000; i++) groups.add({ ...DENIAL, actor: `subject-${i}` });
  groups.add({ ...DENIAL, tenant: { id: 2, name: "other" } });
  const events = takeAll(groups);
  expect(events).toHaveLength(66);
  expect(callsOf(events)).toBe(1001);
  expect(events.at(-2)).toMatchObject({ tenant: { id: 1 }, actor: "", action: "", calls: 936 });
  expect(events.at(-1)).toMatchObject({ tenant: { id: 2 }, actor: "key", calls: 1 });
});

test("there are never more groups than are kept, however many tenants there are", () => {
  const groups = createDenialGroups();
  for (let id = 1; id <= 12_000; id++) groups.add({ ...DENIAL, tenant: { id, name: `t-${id}` } });
  const events = takeAll(groups);
  expect(events).toHaveLength(10_001);
  expect(callsOf(events)).toBe(12_000);
});

test("what could not be written is kept, counted on, and written the next time", () => {
  const groups = createDenialGroups();
  for (let turn = 0; turn < 3; turn++) {
    groups.add(DENIAL);
    groups.allDue();
    groups.putBack(takeAll(groups));
    expect(groups.hasDue()).toBe(false);
    groups.forgetWritten();
    expect(groups.isEmpty()).toBe(false);
  }
  groups.allDue();
  expect(takeAll(groups)).toEqual([{ ...DENIAL, calls: 3 }]);
});

test("what was written is forgotten, bounds included: its next call is a first one again", () => {
  const groups = createDenialGroups();
  for (let turn = 0; turn < 3; turn++) {
    for (let i = 0; i < 8; i++) groups.add({ ...DENIAL, target: `namespace n-${turn}-${i}` });
    expect(takeAll(groups)).toHaveLength(8);
    groups.forgetWritten();
    expect(groups.isEmpty()).toBe(true);
  }
});
