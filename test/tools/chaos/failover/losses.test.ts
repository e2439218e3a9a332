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

test("a record that is as acknowledged has lost neither claim nor completion", () => {
  expect(lost({ state: "completed", token: 7, hash: "paid" })).toEqual([0, 0]);
});

test("a record that is back in progress has lost its completion", () => {
  expect(lost({ state: "inProgress", token: 7 })).toEqual([0, 1]);
});

test("a record that is gone, or has another token, has lost both", () => {
  expect(lost(undefined)).toEqual([1, 1]);
  expect(lost({ state: "completed", token: 3, hash: "paid" })).toEqual([1, 1]);
});

test("a record with another result has lost its completion", () => {
  expect(lost({ state: "completed", token: 7, hash: "declined" })).toEqual([0, 1]);
});

test("the length of a loss counts from the first lost acknowledgement", () => {
  expect(lostForMs({ claims: [], completes: [completed] }, 150)).toBe(30);
  expect(lostForMs({ claims: [claimed], completes: [completed] }, 150)).toBe(50);
  expect(lostForMs({ claims: [], completes: [] }, 150)).toBe(0);
});
