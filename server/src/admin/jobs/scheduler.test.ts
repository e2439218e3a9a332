import { expect, test } from "vitest";
import { createJobScheduler } from "./scheduler.ts";

const TENANT = 7;
const JOB = { id: 70n, tenantId: TENANT };

test("the next job is of a tenant after the one that was taken last", () => {
  const scheduler = createJobScheduler();
  scheduler.next(0).onTaken(JOB);
  scheduler.succeeded();
  expect(scheduler.next(0)).toMatchObject({ afterTenantId: TENANT, skippedJobIds: [] });
});

test("a job that fails is skipped for longer each time, and its batches are halved", () => {
  const scheduler = createJobScheduler();
  const sizes: number[] = [];
  for (const [nowMs, retriedAtMs] of [
    [0, 1000],
    [1000, 3000],
    [3000, 7000],
  ] as const) {
    const selection = scheduler.next(nowMs);
    expect(selection.skippedJobIds).toEqual([]);
    selection.onTaken(JOB);
    sizes.push(selection.maxRowsOf(JOB.id));
    expect(scheduler.failed(nowMs)).toBe(true);
    expect(scheduler.next(retriedAtMs - 1).skippedJobIds).toEqual([JOB.id]);
  }
  expect(sizes).toEqual([500, 250, 125]);
});

test("batches that succeed after failures grow by a tenth of the maximum, up to the maximum", () => {
  const scheduler = createJobScheduler();
  scheduler.next(0).onTaken(JOB);
  scheduler.failed(0);
  scheduler.next(1000).onTaken(JOB);
  scheduler.failed(1000);
  const sizes = [3000, 3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008].map((nowMs) => {
    const selection = scheduler.next(nowMs);
    expect(selection.skippedJobIds).toEqual([]);
    selection.onTaken(JOB);
    scheduler.succeeded();
    return selection.maxRowsOf(JOB.id);
  });
  expect(sizes).toEqual([175, 225, 275, 325, 375, 425, 475, 500, 500]);
});

test("if no job could be taken, no job failed", () => {
  const scheduler = createJobScheduler();
  scheduler.next(0);
  expect(scheduler.failed(0)).toBe(false);
});

test("a bounded number of failing jobs is remembered", () => {
  const scheduler = createJobScheduler();
  for (let id = 1n; id <= 1500n; id++) {
    scheduler.next(0).onTaken({ id, tenantId: TENANT });
    scheduler.failed(0);
  }
  expect(scheduler.next(0).skippedJobIds).toHaveLength(1000);
});
