import { describe, expect, test } from "vitest";
import { checkHistory } from "./check.ts";
import type { Operation } from "./operation.ts";
import {
  admin,
  batch,
  claim,
  complete,
  extend,
  granted,
  IN_PROGRESS,
  invariantsOf,
  LOST,
  lookup,
  NOTHING_THERE,
  RESULT_GONE,
  refused,
  release,
  replayed,
  STORED_BEFORE,
  scenario,
  seen,
  violated,
} from "./scenario.ts";

const FORGET = { kind: "forget" } as const;
const held = claim(0, 10, granted(1));
const done = [held, complete(20, 30, 1, "paid")];

describe("3: an acknowledged Complete is replayed", () => {
  test("a later claim and a lookup get the stored result", () => {
    expect(violated(...done, claim(40, 50, replayed("paid")))).toEqual([]);
    expect(violated(...done, lookup(40, 50, seen("completed", 1, { hash: "paid" })))).toEqual([]);
  });

  test("any other answer is a violation", () => {
    expect(violated(...done, claim(40, 50, replayed("paid twice")))).toEqual([3]);
    expect(violated(...done, claim(40, 50, granted(2)))).toEqual([1]);
    expect(violated(...done, lookup(40, 50, NOTHING_THERE))).toEqual([3]);
    expect(violated(held, claim(40, 50, replayed("paid")))).toEqual([3]);
  });

  test("a Complete of unknown outcome may have happened or not, but not both", () => {
    const maybe = [held, complete(20, LOST, 1, "paid")];
    expect(violated(...maybe, claim(40, 50, replayed("paid")))).toEqual([]);
    expect(violated(...maybe, claim(40, 50, IN_PROGRESS))).toEqual([]);
    expect(violated(...maybe, claim(40, 50, replayed("paid")), claim(60, 70, IN_PROGRESS))).toEqual([4]);
    expect(violated(...maybe, claim(40, 50, IN_PROGRESS), claim(60, 70, replayed("paid")))).toEqual([]);
  });

  test("a result before its completion was invoked is a violation", () => {
    expect(violated(held, claim(11, 15, replayed("paid")), complete(20, 30, 1, "paid"))).toEqual([3]);
    expect(violated(held, claim(11, 25, replayed("paid")), complete(20, 30, 1, "paid"))).toEqual([]);
  });

  test("the result is dropped when its retention ends, the key when its own ends", () => {
    expect(violated(...done, claim(29_000, 29_010, RESULT_GONE))).toEqual([3]);
    expect(violated(...done, claim(30_100, 30_110, RESULT_GONE))).toEqual([]);
    expect(violated(...done, claim(30_100, 30_110, replayed("paid")))).toEqual([3]);
    expect(violated(...done, claim(59_000, 59_010, granted(2)))).toEqual([1]);
    expect(violated(...done, claim(60_100, 60_110, granted(2)))).toEqual([]);
    expect(violated(...done, claim(60_100, 60_110, RESULT_GONE))).toEqual([3]);
  });

  test("a failure has a separate retention", () => {
    const failed = [held, complete(20, 30, 1, "declined", undefined, { isFailure: true })];
    expect(violated(...failed, claim(10_100, 10_110, RESULT_GONE))).toEqual([]);
    expect(violated(...done, claim(10_100, 10_110, RESULT_GONE))).toEqual([3]);
  });

  test("a Complete may tighten retention", () => {
    const short = [held, complete(20, 30, 1, "paid", undefined, { retentionMs: 5000 })];
    expect(violated(...short, claim(5100, 5110, granted(2)))).toEqual([]);
    expect(violated(...done, claim(5100, 5110, granted(2)))).toEqual([1]);
  });
});

describe("4: what is done stays done, and a superseded token changes nothing", () => {
  const superseded = [held, claim(1500, 1510, granted(2))];

  test("a superseded Complete is refused and leaves no trace", () => {
    const late = complete(1600, 1610, 1, "late", refused("CLAIM_SUPERSEDED"));
    expect(violated(...superseded, late, claim(1700, 1710, IN_PROGRESS))).toEqual([]);
    expect(violated(...superseded, late, claim(1700, 1710, replayed("late")))).toEqual([3]);
    expect(violated(...superseded, complete(1600, 1610, 1, "late"))).toEqual([4]);
    expect(violated(...superseded, release(1600, 1610, 1))).toEqual([4]);
  });

  test("refusing the newest claim as superseded is a violation", () => {
    expect(violated(held, complete(1600, 1610, 1, "late", refused("CLAIM_SUPERSEDED")))).toEqual([4]);
    expect(violated(held, complete(1600, 1610, 1, "late"))).toEqual([]);
  });

  test("a second Complete is a repeat, or is refused", () => {
    expect(violated(...done, complete(40, 50, 1, "paid", STORED_BEFORE))).toEqual([]);
    expect(violated(...done, complete(40, 50, 1, "paid"))).toEqual([4]);
    expect(violated(...done, complete(40, 50, 1, "other", refused("ALREADY_COMPLETED")))).toEqual([]);
    expect(violated(...done, complete(40, 50, 1, "paid", refused("ALREADY_COMPLETED")))).toEqual([4]);
    expect(violated(...done, complete(40, 50, 1, "other", STORED_BEFORE))).toEqual([4]);
    expect(violated(held, complete(40, 50, 1, "paid", STORED_BEFORE))).toEqual([3]);
  });

  test("a completed claim can be neither released nor extended", () => {
    expect(violated(...done, release(40, 50, 1, refused("ALREADY_COMPLETED")))).toEqual([]);
    expect(violated(...done, release(40, 50, 1))).toEqual([4]);
    expect(violated(...done, extend(40, 50, 1))).toEqual([4]);
  });

  test("a released claim can't be completed, and can be released again", () => {
    const released = [held, release(20, 30, 1)];
    expect(violated(...released, complete(40, 50, 1, "paid", refused("ALREADY_RELEASED")))).toEqual([]);
    expect(violated(...released, complete(40, 50, 1, "paid"))).toEqual([4]);
    expect(violated(...released, release(40, 50, 1))).toEqual([]);
  });

  test("RECORD_NOT_FOUND for an existing record is a violation", () => {
    expect(violated(...done, complete(40, 50, 1, "paid", refused("RECORD_NOT_FOUND")))).toEqual([3]);
    const forgotten = [...done, admin(32, 35, FORGET)];
    expect(violated(...forgotten, complete(40, 50, 1, "paid", refused("RECORD_NOT_FOUND")))).toEqual([]);
    expect(violated(...forgotten, complete(40, 50, 1, "paid"))).toEqual([4]);
  });
});

describe("forgetting", () => {
  const forgotten = [...done, admin(100, 110, FORGET)];

  test("copies may replay the result for 10 s more, and no longer", () => {
    expect(violated(...forgotten, claim(9000, 9010, replayed("paid")))).toEqual([]);
    expect(violated(...forgotten, claim(10_200, 10_210, replayed("paid")))).toEqual([3]);
    expect(violated(...forgotten, claim(9000, 9010, replayed("other")))).toEqual([3]);
  });

  test("copies may replay it beside the next claim", () => {
    const again = [...forgotten, claim(120, 130, granted(2))];
    expect(violated(...again, claim(200, 210, replayed("paid")), claim(300, 310, IN_PROGRESS))).toEqual([]);
  });

  test("a copy binds the key as the record did", () => {
    const bound = claim(0, 10, granted(1), { fingerprint: "f1" });
    const past = [bound, complete(20, 30, 1, "paid"), admin(100, 110, FORGET)];
    const other = { fingerprint: "f2" };
    expect(violated(...past, claim(200, 210, refused("FINGERPRINT_MISMATCH"), other))).toEqual([]);
    expect(violated(...past, claim(200, 210, replayed("paid"), other))).toEqual([3]);
    expect(violated(...past, claim(20_000, 20_010, refused("FINGERPRINT_MISMATCH"), other))).toEqual([5]);
  });

  test("a lookup is not answered from a copy", () => {
    expect(violated(...forgotten, lookup(200, 210, NOTHING_THERE))).toEqual([]);
    expect(violated(...forgotten, lookup(200, 210, seen("completed", 1, { hash: "paid" })))).toEqual([1]);
  });

  test("forgetting during a claim may take effect before or after it", () => {
    const beside = [claim(0, 10, granted(1)), admin(5, 15, FORGET)];
    expect(violated(...beside, lookup(20, 30, NOTHING_THERE))).toEqual([]);
    expect(violated(...beside, lookup(20, 30, seen("inProgress", 1)))).toEqual([]);
  });

  test("a forget of unknown outcome may have happened or not", () => {
    const maybe = [...done, admin(100, LOST, FORGET)];
    expect(violated(...maybe, claim(200, 210, granted(2)))).toEqual([]);
    expect(violated(...maybe, claim(200, 210, replayed("paid")))).toEqual([]);
  });
});

describe("8: what is refused had no effect", () => {
  test.each(["INVALID_REQUEST", "RESULT_TOO_LARGE", "QUOTA_RATE"])("%s", (reason) => {
    const turnedDown = complete(20, 30, 1, "paid", refused(reason));
    expect(violated(held, turnedDown, claim(40, 50, IN_PROGRESS))).toEqual([]);
    expect(violated(held, turnedDown, claim(40, 50, replayed("paid")))).toEqual([3]);
  });

  test("a refused claim does not hold the key", () => {
    const turnedDown = claim(0, 10, refused("INVALID_REQUEST"));
    expect(violated(turnedDown, claim(20, 30, granted(1)))).toEqual([]);
    expect(violated(turnedDown, claim(20, 30, IN_PROGRESS))).toEqual([9]);
  });

  test("a refusal that the RPC does not have is a violation", () => {
    expect(violated(held, release(20, 30, 1, refused("RESULT_GONE")))).toEqual([8]);
  });
});

describe("6, 11, 13", () => {
  test("an answer has no mark of another tenant", () => {
    const replay = claim(40, 50, replayed("paid"));
    expect(violated(...done, { ...replay, marks: ["acme"] })).toEqual([]);
    expect(violated(...done, { ...replay, marks: ["acme", "globex"] })).toEqual([6]);
  });

  test("a batch's items take effect in order", () => {
    const inOrder = [claim(0, 10, granted(1)), claim(0, 10, IN_PROGRESS)];
    expect(violated(...batch("b", ...inOrder))).toEqual([]);
    expect(violated(...batch("b", ...inOrder.toReversed()))).toEqual([9]);
    expect(violated(...inOrder.toReversed())).toEqual([]);
  });

  test("an item of unknown outcome delays no item after it", () => {
    expect(violated(held, ...batch("b", release(20, LOST, 1), claim(20, 30, IN_PROGRESS)))).toEqual([]);
    expect(violated(held, ...batch("b", release(20, LOST, 1), claim(20, 30, granted(2))))).toEqual([]);
  });

  test("an item with another call's answer is a violation", () => {
    expect(violated(claim(0, 10, { kind: "malformed", problem: "answered as a release" }))).toEqual([11]);
  });

  test("a waiting claim gets an answer that is legal at a moment of the call", () => {
    const waiting = (to: number, ...rest: [Operation["answer"]]) => claim(15, to, ...rest, { waitMs: 500 });
    expect(violated(...done, waiting(40, replayed("paid")))).toEqual([]);
    expect(violated(held, waiting(600, IN_PROGRESS))).toEqual([]);
    expect(violated(held, waiting(300, IN_PROGRESS))).toEqual([13]);
    expect(violated(held, release(20, 30, 1), waiting(40, granted(2)))).toEqual([]);
    expect(violated(held, waiting(40, granted(2)))).toEqual([1]);
  });
});

describe("10: retention that is changed", () => {
  const shorter = {
    tenant: "acme",
    namespace: "charges",
    keyRetentionMs: 5000,
    resultRetentionMs: 5000,
    failureRetentionMs: 5000,
    invokedAtMs: 100,
    returnedAtMs: 110,
  };
  const check = (
    operations: Operation[],
    change: Partial<typeof shorter> & { appliedToExistingAtMs?: number } = {},
  ) => invariantsOf(checkHistory(scenario(operations, {}, [{ ...shorter, ...change }])));

  test("a change leaves existing records unchanged unless it is applied to them", () => {
    expect(check([...done, claim(20_000, 20_010, granted(2))])).toEqual([1]);
    expect(check([...done, claim(20_000, 20_010, granted(2))], { appliedToExistingAtMs: 200 })).toEqual([]);
    expect(check([...done, claim(20_000, 20_010, replayed("paid"))], { appliedToExistingAtMs: 200 })).toEqual(
      [3],
    );
  });

  test("a change applies to claims once every replica knows it", () => {
    const later = [claim(20_000, 20_010, granted(1)), complete(20_020, 20_030, 1, "paid")];
    expect(check([...later, claim(26_000, 26_010, granted(2))])).toEqual([]);
    expect(check([...later, claim(26_000, 26_010, replayed("paid"))])).toEqual([3]);
  });

  test("a claim made while replicas may still differ may have either", () => {
    const during = [claim(5000, 5010, granted(1)), complete(5020, 5030, 1, "paid")];
    expect(check([...during, claim(12_000, 12_010, granted(2))])).toEqual([]);
    expect(check([...during, claim(12_000, 12_010, replayed("paid"))])).toEqual([]);
  });
});

test("a search that runs out of its budget is a timeout, not a pass", () => {
  const { timeouts, violations } = checkHistory(scenario(done), { budget: 1 });
  expect(violations).toEqual([]);
  expect(timeouts).toEqual([{ tenant: "acme", namespace: "charges", key: "order-1" }]);
});

test("keys are judged separately, also equal keys of different tenants", () => {
  const { operations, policies } = scenario(done);
  const other = operations.map((operation) => ({ ...operation, tenant: "globex", id: `${operation.id}b` }));
  const both = [...policies, ...policies.map((policy) => ({ ...policy, tenant: "globex" }))];
  const verdict = checkHistory({ operations: [...operations, ...other], policies: both });
  expect(verdict).toMatchObject({ keys: 2, operations: 4, violations: [] });
});
