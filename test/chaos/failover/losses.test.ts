import { expect, test } from "vitest";
import { nameOf, type SeenRecord } from "../../history/operation.ts";
import { type Acknowledgement, lossesOf, lostForMs } from "./losses.ts";

const record = { tenant: "acme", namespace: "charges", key: "order-1" };
const claimed: Acknowledgement = { kind: "claim", record, token: 7, atMs: 100 };
const completed: Acknowledgement = { kind: "complete", record, token: 7, hash: "paid", atMs: 120 };

function lost(seen: SeenRecord | undefined) {
  const { claims, completes } = lossesOf([claimed, completed], new Map([[nameOf(record), seen]]));
  return [claims.length, completes.length];
}

test("what is there as it was acknowledged is not lost", () => {
  expect(lost({ state: "completed", token: 7, hash: "paid" })).toEqual([0, 0]);
});

test("a record that is back in progress has lost its completion", () => {
  expect(lost({ state: "inProgress", token: 7 })).toEqual([0, 1]);
});

test("a record that is gone, or another's, has lost both", () => {
  expect(lost(undefined)).toEqual([1, 1]);
  expect(lost({ state: "completed", token: 3, hash: "paid" })).toEqual([1, 1]);
});

test("another result is a lost one", () => {
  expect(lost({ state: "completed", token: 7, hash: "declined" })).toEqual([0, 1]);
});

test("losses reach back to the first acknowledgement that is gone", () => {
  expect(lostForMs({ claims: [], completes: [completed] }, 150)).toBe(30);
  expect(lostForMs({ claims: [claimed], completes: [completed] }, 150)).toBe(50);
  expect(lostForMs({ claims: [], completes: [] }, 150)).toBe(0);
});
