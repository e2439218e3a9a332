import { expect, test } from "vitest";
import { checkHistory } from "./check.ts";
import { isDefinite } from "./operation.ts";
import {
  claim,
  complete,
  granted,
  IN_PROGRESS,
  lookup,
  release,
  replayed,
  scenario,
  seen,
} from "./scenario.ts";
import { shrink } from "./shrink.ts";
import { describeViolation } from "./timeline.ts";

const failing = scenario([
  claim(0, 10, granted(1)),
  claim(20, 30, IN_PROGRESS),
  lookup(25, 35, seen("inProgress", 1)),
  release(40, 50, 1),
  claim(60, 70, granted(2)),
  complete(80, 90, 2, "paid"),
  claim(100, 110, replayed("paid")),
  claim(120, 130, replayed("paid twice")),
  claim(140, 150, replayed("paid")),
]);

test("shrinking drops operations that changed nothing, and keeps possible changes", () => {
  const { operations } = shrink(failing);
  expect(operations.filter(isDefinite).map(({ id }) => id)).toEqual(["#8"]);
  expect(operations.map(({ id }) => id)).toEqual(["#1", "#4", "#5", "#6", "#8"]);
});

test("a legal history stays as it is", () => {
  const legal = scenario(failing.operations.slice(0, 7));
  expect(shrink(legal)).toBe(legal);
});

test("a violation is described as the key's timeline, which marks the contradiction", () => {
  const [violation] = checkHistory(scenario(failing.operations.slice(3, 8))).violations;
  expect(violation && describeViolation(violation).split("\n")).toEqual([
    'Invariant 4 of acme/charges "order-1": #1: accepted although there is no record',
    "  order  from ms  to ms   id  client @ replica      asked                         answered",
    "  >>     0.000    10.000  #1  client-1 @ replica-1  release token=1               OK",
    "         20.000   30.000  #2  client-1 @ replica-1  claim                         CLAIMED token 2",
    "         40.000   50.000  #3  client-1 @ replica-1  complete token=2 result=paid  OK",
    "         60.000   70.000  #4  client-1 @ replica-1  claim                         COMPLETED paid",
    "         80.000   90.000  #5  client-1 @ replica-1  claim                         COMPLETED paid twice",
    "After the 0 that have an order, the key is ABSENT.",
    "  #1 can't come next (4): accepted although there is no record",
  ]);
});
