import { expect, test } from "vitest";
import { checkHistory } from "./check.ts";
import { checkEffects } from "./effects.ts";
import { type FinalRead, withFinalReads } from "./final-reads.ts";
import { checkLiveness } from "./liveness.ts";
import type { ClockMove, NamespacePolicy, Operation } from "./operation.ts";
import {
  AMBIGUOUS,
  claim,
  complete,
  granted,
  IN_PROGRESS,
  invariantsOf,
  LOST,
  lookup,
  NOTHING_THERE,
  RESULT_GONE,
  refused,
  replayed,
  scenario,
  seen,
} from "./scenario.ts";

/** The retention of the scenarios is a minute, and their lease a second. */
const AHEAD: ClockMove = { fromMs: 1000, toMs: 9000, aheadMs: 600_000 };
/** All replicas started meanwhile, and follow the clock for ten minutes. */
const AT_START: ClockMove = { ...AHEAD, aheadMs: 80 * 3_600_000, retentionAheadMs: 600_000 };
const HOLD = { onLeaseExpiry: "HOLD" } as const;

const held = claim(0, 10, granted(1));
const heldLong = claim(0, 10, granted(1), { leaseMs: 20_000 });
const paid = complete(20, 30, 1, "paid");

function history(operations: readonly Operation[], policy: Partial<NamespacePolicy> = {}, moves = [AHEAD]) {
  return scenario(operations, policy, [], moves);
}

/** Returns the violated invariants with the clock ahead, and without. */
function violated(operations: readonly Operation[], policy: Partial<NamespacePolicy> = {}) {
  const [ahead, right] = [[AHEAD], []].map((moves) =>
    invariantsOf(checkHistory(history(operations, policy, moves))),
  );
  return { ahead, right };
}

test("a lease may end early while the clock is ahead, and not before", () => {
  expect(violated([heldLong, claim(5000, 5010, granted(2))])).toEqual({ ahead: [], right: [1] });
  expect(violated([heldLong, claim(900, 910, granted(2))])).toEqual({ ahead: [1], right: [1] });
  expect(violated([heldLong, claim(9100, 9110, granted(2))])).toEqual({ ahead: [1], right: [1] });
  expect(violated([heldLong, claim(5000, 5010, AMBIGUOUS)], HOLD)).toEqual({ ahead: [], right: [1] });
});

test("a lease granted while the clock is ahead may end as much later, not later still", () => {
  const stuck = (atMs: number) => [claim(5000, 5010, granted(1)), claim(atMs, atMs + 10, IN_PROGRESS)];
  expect(violated(stuck(20_000))).toEqual({ ahead: [], right: [9] });
  expect(violated(stuck(607_000), { keyRetentionMs: 3_600_000 })).toEqual({ ahead: [9], right: [9] });
});

test("reclaim_within may pass early until replicas have seen the clock's return", () => {
  const policy = { reclaimWithinMs: 3000 };
  const early = (atMs: number, move: ClockMove) => {
    const operations = [claim(atMs, atMs + 10, granted(1)), claim(atMs + 1500, atMs + 1510, AMBIGUOUS)];
    return invariantsOf(checkHistory(history(operations, policy, [move])));
  };
  expect([early(9100, AT_START), early(9100, AHEAD), early(39_100, AT_START)]).toEqual([[], [9], [9]]);
});

test("no key with retention left is granted again, during the move or after it", () => {
  expect(violated([held, paid, claim(5000, 5010, granted(2))])).toEqual({ ahead: [1], right: [1] });
  expect(violated([held, paid, claim(20_000, 20_010, granted(2))])).toEqual({ ahead: [1], right: [1] });
  expect(violated([held, paid, claim(70_000, 70_010, granted(2))])).toEqual({ ahead: [], right: [] });
});

test("a take-over of an ended lease is the key's next attempt", () => {
  expect(violated([held, claim(5000, 5010, granted(2, 2))])).toEqual({ ahead: [], right: [] });
  expect(violated([held, claim(5000, 5010, granted(2, 1))])).toEqual({ ahead: [1], right: [1] });
});

test("a record may not be shown while the clock is ahead, but is there afterwards", () => {
  const notFound = complete(5000, 5010, 1, "paid", refused("RECORD_NOT_FOUND"));
  expect(violated([held, paid, lookup(5000, 5010, NOTHING_THERE)])).toEqual({ ahead: [], right: [3] });
  expect(violated([held, paid, lookup(9100, 9110, NOTHING_THERE)])).toEqual({ ahead: [3], right: [3] });
  expect(violated([heldLong, notFound])).toEqual({ ahead: [], right: [3] });
  expect(violated([held, paid, claim(5000, 5010, RESULT_GONE)])).toEqual({ ahead: [], right: [3] });
  expect(violated([held, paid, claim(9100, 9110, RESULT_GONE)])).toEqual({ ahead: [3], right: [3] });
  const again = [
    lookup(5000, 5010, NOTHING_THERE),
    claim(5020, 5030, RESULT_GONE),
    claim(9100, 9110, replayed("paid")),
  ];
  expect(violated([held, paid, ...again]).ahead).toEqual([]);
});

test("retention that begins while the clock is ahead may end as much later", () => {
  const late = [claim(5000, 5010, granted(1)), complete(5020, 5030, 1, "paid")];
  expect(violated([...late, lookup(80_000, 80_010, seen("completed", 1, { hash: "paid" }))])).toEqual({
    ahead: [],
    right: [1],
  });
});

test("a record that was deleted while the clock was ahead is missing at the end", () => {
  const read: FinalRead = {
    tenant: "acme",
    namespace: "charges",
    key: "order-1",
    seen: undefined,
    invokedAtMs: 20_000,
    returnedAtMs: 20_010,
  };
  expect(invariantsOf(checkHistory(withFinalReads(history([held, paid]), [read])))).toEqual([3]);
});

test("retention may end early, and stays ended, if replicas started while the clock was ahead", () => {
  const started = (operations: readonly Operation[], policy: Partial<NamespacePolicy> = {}) =>
    invariantsOf(checkHistory(history(operations, policy, [AT_START])));
  const paidAt = (ms: number) => [claim(ms, ms + 10, granted(1)), complete(ms + 20, ms + 30, 1, "paid")];
  for (const after of [claim(5000, 5010, granted(2)), claim(20_000, 20_010, granted(2))]) {
    expect(started([held, paid, after])).toEqual([]);
    expect(started([held, paid, after], { keyRetentionMs: 3_600_000 })).toEqual([1]);
  }
  expect(started([held, paid, lookup(20_000, 20_010, NOTHING_THERE)])).toEqual([]);
  expect(started([held, paid, claim(20_000, 20_010, RESULT_GONE)])).toEqual([]);
  expect(started([held, paid, claim(900, 910, granted(2))])).toEqual([1]);
  // A record from after the move follows the right clock.
  expect(started([...paidAt(9100), claim(20_000, 20_010, granted(2))])).toEqual([1]);
});

test("a second effect is allowed after a lease that ended early, and not after a completion", () => {
  const name = { tenant: "acme", namespace: "charges", key: "order-1" };
  const effects = {
    unfenced: [
      { ...name, token: 1, atMs: 50 },
      { ...name, token: 2, atMs: 5050 },
    ],
    fenced: [],
  };
  const again = claim(5000, 5010, granted(2));
  const count = (operations: Operation[], moves: ClockMove[]) =>
    checkEffects(history(operations, {}, moves), effects).length;
  expect(count([heldLong, again], [AHEAD])).toBe(0);
  expect(count([heldLong, again], [])).toBe(1);
  expect(count([heldLong, paid, again], [AHEAD])).toBe(1);
});

test("a key may stay in progress after a lease that may be granted while the clock was ahead", () => {
  const probe = claim(20_000, 20_010, IN_PROGRESS);
  const count = (first: Operation, moves: ClockMove[]) =>
    checkLiveness(history([first, probe], {}, moves), { healedAtMs: 10_000 }).violations.length;
  for (const first of [claim(5000, 5010, granted(1)), claim(5000, LOST)]) {
    expect(count(first, [AHEAD])).toBe(0);
    expect(count(first, [])).toBe(1);
  }
  expect(count(claim(9500, 9510, granted(1)), [AHEAD])).toBe(1);
});
