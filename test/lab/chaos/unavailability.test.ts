import { expect, test } from "vitest";
import { claim, granted, LOST } from "../history/scenario.ts";
import { longestUnavailableMs } from "./unavailability.ts";

const answeredAt = (...instants: number[]) => instants.map((atMs) => claim(atMs - 1, atMs, granted(1)));

test("a fault's unavailability is the longest time without an answer in or soon after it", () => {
  const operations = answeredAt(90, 110, 400, 450, 5200);
  const injections = [
    { fault: "replica-kill", target: "replica" as const, startedAtMs: 100, healedAtMs: 300 },
  ];
  expect(longestUnavailableMs(operations, injections, 20_000)).toEqual({ "replica-kill": 4750 });
});

test("gaps long after a fault, or after the load, do not count", () => {
  const operations = answeredAt(110, 300, 5000, 20_000);
  const injections = [
    { fault: "replica-kill", target: "replica" as const, startedAtMs: 100, healedAtMs: 300 },
  ];
  expect(longestUnavailableMs(operations, injections, 30_000)).toEqual({ "replica-kill": 4700 });
  expect(longestUnavailableMs(operations, injections, 600)).toEqual({ "replica-kill": 300 });
});

test("an unknown outcome is not an answer, and of two faults of a kind the longer gap counts", () => {
  const operations = [...answeredAt(110, 900, 1000, 1100), claim(200, LOST)];
  const injections = [
    { fault: "redis-kill", target: "redis" as const, startedAtMs: 100, healedAtMs: 300 },
    { fault: "redis-kill", target: "redis" as const, startedAtMs: 950, healedAtMs: 1050 },
  ];
  expect(longestUnavailableMs(operations, injections, 1200)).toEqual({ "redis-kill": 790 });
});
