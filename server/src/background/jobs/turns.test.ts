import { expect, test } from "vitest";
import { createJobTurns } from "./turns.ts";

const TENANT = 7;

test("the next turn is for tenants behind the one that had the last", () => {
  const turns = createJobTurns();
  turns.next(0).onTaken(TENANT);
  turns.succeeded();
  expect(turns.next(0)).toMatchObject({ afterTenantId: TENANT, besides: [] });
});

test("a tenant whose job fails is passed over for longer each time, and its batches are halved", () => {
  const turns = createJobTurns();
  const limits: number[] = [];
  for (const [nowMs, againAtMs] of [
    [0, 1000],
    [1000, 3000],
    [3000, 7000],
  ] as const) {
    const turn = turns.next(nowMs);
    expect(turn.besides).toEqual([]);
    turn.onTaken(TENANT);
    limits.push(turn.limitOf(TENANT));
    expect(turns.failed(nowMs)).toBe(true);
    expect(turns.next(againAtMs - 1).besides).toEqual([TENANT]);
  }
  expect(limits).toEqual([500, 250, 125]);
});

test("a batch that gets through doubles the next one, up to where it was", () => {
  const turns = createJobTurns();
  turns.next(0).onTaken(TENANT);
  turns.failed(0);
  turns.next(1000).onTaken(TENANT);
  turns.failed(1000);
  const limits = [3000, 3001, 3002].map((nowMs) => {
    const turn = turns.next(nowMs);
    expect(turn.besides).toEqual([]);
    turn.onTaken(TENANT);
    turns.succeeded();
    return turn.limitOf(TENANT);
  });
  expect(limits).toEqual([250, 500, 500]);
});

test("where no job could be taken, no job failed", () => {
  const turns = createJobTurns();
  turns.next(0);
  expect(turns.failed(0)).toBe(false);
});

test("a bounded number of failing tenants is remembered", () => {
  const turns = createJobTurns();
  for (let tenantId = 1; tenantId <= 1500; tenantId++) {
    turns.next(0).onTaken(tenantId);
    turns.failed(0);
  }
  expect(turns.next(0).besides).toHaveLength(1000);
});
