import { describe, expect, test } from "vitest";
import { checkHistory } from "./check.ts";
import type { Operation } from "./operation.ts";
import {
  AMBIGUOUS,
  admin,
  claim,
  complete,
  extend,
  granted,
  IN_PROGRESS,
  invariantsOf,
  LOST,
  lookup,
  NOTHING_THERE,
  OK,
  RECORDED,
  refused,
  release,
  replayed,
  scenario,
  seen,
  violated,
  violatedUnderHold,
} from "./scenario.ts";

const MISMATCH = refused("FINGERPRINT_MISMATCH");

describe("1: one live token per key", () => {
  test("a claim of a free key is granted", () => {
    expect(violated(claim(0, 10, granted(1)))).toEqual([]);
  });

  test("a claim that completes its record is recorded once, and again for its own claim id alone", () => {
    const seen = { completesWith: "empty" };
    const own = { ...seen, claimId: "call-1" };
    const first = claim(0, 10, RECORDED, own);
    expect(violated(first, claim(20, 30, replayed("empty"), seen), claim(40, 50, RECORDED, own))).toEqual([]);
    expect(violated(first, claim(20, 30, RECORDED, seen))).toEqual([1]);
    expect(violated(first, claim(20, 30, replayed("empty"), own))).toEqual([3]);
    expect(violated(first, claim(20, 30, granted(2)))).toEqual([1]);
    expect(violated(claim(0, 10, granted(1)), claim(20, 30, RECORDED, seen))).toEqual([1]);
    expect(violated(claim(0, LOST, undefined, seen), claim(20, 30, replayed("empty")))).toEqual([]);
  });

  test("its empty result lasts as long as its key, also after a change of retention", () => {
    const retentions = { keyRetentionMs: 60_000, resultRetentionMs: 20_000, failureRetentionMs: 20_000 };
    const at = { invokedAtMs: 100, returnedAtMs: 110, appliedToExistingAtMs: 200 };
    const change = { tenant: "acme", namespace: "charges", ...retentions, ...at };
    const operations = [
      claim(0, 10, RECORDED, { completesWith: "empty" }),
      claim(50_000, 50_010, replayed("empty")),
    ];
    expect(invariantsOf(checkHistory(scenario(operations, {}, [change])))).toEqual([]);
  });

  test("a second grant that returns before the first one's lease can have ended is a violation", () => {
    expect(violated(claim(0, 10, granted(1)), claim(500, 999, granted(2)))).toEqual([1]);
  });

  test("a second grant that returns once the lease may have ended is legal", () => {
    expect(violated(claim(0, 10, granted(1)), claim(500, 1000, granted(2)))).toEqual([]);
  });

  test("between the two bounds of a lease's end both answers are legal", () => {
    const first = claim(0, 300, granted(1));
    expect(violated(first, claim(1100, 1150, granted(2)))).toEqual([]);
    expect(violated(first, claim(1100, 1150, IN_PROGRESS))).toEqual([]);
  });

  test("a lease that was seen expired does not run again automatically", () => {
    const first = claim(0, 300, granted(1));
    const ambiguous = claim(1100, 1150, AMBIGUOUS);
    expect(violatedUnderHold(first, ambiguous, claim(1160, 1170, IN_PROGRESS))).toEqual([]);
    expect(violatedUnderHold(first, ambiguous, claim(1200, 1210, IN_PROGRESS))).toEqual([9]);
  });

  test("a grant during a release is legal, one before it is not", () => {
    const first = claim(0, 10, granted(1));
    expect(violated(first, release(100, 200, 1), claim(150, 180, granted(2)))).toEqual([]);
    expect(violated(first, claim(50, 90, granted(2)), release(100, 200, 1))).toEqual([1]);
  });

  test("a release of unknown outcome explains a grant after it, but none before it", () => {
    const first = claim(0, 10, granted(1));
    expect(violated(first, release(100, LOST, 1), claim(500, 510, granted(2)))).toEqual([]);
    expect(violated(first, claim(50, 60, granted(2)), release(100, LOST, 1))).toEqual([1]);
  });

  test("a grant that outlives its own lease is not an obstacle to the next", () => {
    expect(violated(claim(0, 5000, granted(1)), claim(4000, 4500, granted(2)))).toEqual([]);
  });

  test("an extension moves the lease's end", () => {
    const held = [claim(0, 10, granted(1)), extend(900, 910, 1)];
    expect(violated(...held, claim(1500, 1600, granted(2)))).toEqual([1]);
    expect(violated(...held, claim(1850, 1900, granted(2)))).toEqual([]);
    expect(violated(...held, claim(1500, 1600, IN_PROGRESS))).toEqual([]);
  });

  test("an extension after the lease's end revives it, unless another claim took over", () => {
    const held = [claim(0, 10, granted(1)), extend(3000, 3010, 1)];
    expect(violated(...held, claim(3500, 3510, granted(2)))).toEqual([1]);
    const taken = [claim(0, 10, granted(1)), claim(2000, 2010, granted(2))];
    expect(violated(...taken, extend(3000, 3010, 1, refused("CLAIM_SUPERSEDED")))).toEqual([]);
    expect(violated(...taken, extend(3000, 3010, 1))).toEqual([4]);
  });

  test("a claim's own lease counts, not the policy's", () => {
    const first = claim(0, 10, granted(1), { leaseMs: 200 });
    expect(violated(first, claim(240, 250, granted(2)))).toEqual([]);
    expect(violated(first, claim(240, 250, IN_PROGRESS))).toEqual([9]);
  });

  test("an attempt follows the one before it, and starts at 1 when the key is forgotten", () => {
    const first = [claim(0, 10, granted(1, 1)), release(20, 30, 1)];
    expect(violated(...first, claim(40, 50, granted(2, 2)))).toEqual([]);
    expect(violated(...first, claim(40, 50, granted(2, 1)))).toEqual([1]);
    expect(violated(...first, admin(32, 35, { kind: "forget" }), claim(40, 50, granted(2, 1)))).toEqual([]);
  });

  test("a grant whose reply was lost holds the key", () => {
    expect(violated(claim(0, LOST), claim(100, 110, IN_PROGRESS))).toEqual([]);
    expect(violated(claim(100, 110, IN_PROGRESS))).toEqual([9]);
  });

  test("a grant whose reply was lost need not have happened", () => {
    expect(violated(claim(0, LOST), claim(100, 110, granted(1)), claim(200, 210, IN_PROGRESS))).toEqual([]);
  });

  test("a claim whose reply was lost may still be granted much later", () => {
    const held = [claim(0, 10, granted(1)), claim(20, LOST), release(30, 40, 1)];
    expect(violated(...held, claim(5000, 5010, IN_PROGRESS))).toEqual([]);
  });
});

describe("claim ids", () => {
  const first = claim(0, 10, granted(1), { claimId: "a" });

  test("a repeat is answered with the same claim", () => {
    expect(violated(first, claim(100, 110, granted(1), { claimId: "a" }))).toEqual([]);
    expect(violated(first, claim(100, 110, granted(2), { claimId: "a" }))).toEqual([1]);
    expect(violated(first, claim(100, 110, IN_PROGRESS, { claimId: "a" }))).toEqual([1]);
  });

  test("another caller is never answered with the same token", () => {
    expect(violated(first, claim(100, 110, granted(1), { claimId: "b" }))).toEqual([1]);
    expect(violated(first, claim(100, 110, granted(1)))).toEqual([1]);
  });

  test("a repeat after the lease's end is a claim like any other", () => {
    expect(violated(first, claim(2000, 2010, granted(2), { claimId: "a" }))).toEqual([]);
    expect(violated(first, claim(2000, 2010, granted(1), { claimId: "a" }))).toEqual([2]);
  });

  test("a repeat recovers the claim whose reply was lost", () => {
    const lost = claim(0, LOST, undefined, { claimId: "a" });
    const repeat = claim(100, 110, granted(7), { claimId: "a" });
    expect(violated(lost, repeat, complete(120, 130, 7, "paid"))).toEqual([]);
    expect(violated(lost, repeat, complete(120, 130, 8, "paid"))).toEqual([4]);
  });
});

describe("2: tokens rise", () => {
  test.each([
    ["a release", release(20, 30, 5)],
    ["forgetting", admin(20, 30, { kind: "forget" })],
  ])("across %s", (_, end) => {
    expect(violated(claim(0, 10, granted(5)), end, claim(40, 50, granted(6)))).toEqual([]);
    expect(violated(claim(0, 10, granted(5)), end, claim(40, 50, granted(4)))).toEqual([2]);
    expect(violated(claim(0, 10, granted(5)), end, claim(40, 50, granted(5)))).toEqual([2]);
  });

  test("tokens rise across retention and the sweep", () => {
    expect(violated(claim(0, 10, granted(5)), claim(60_020, 60_030, granted(6)))).toEqual([]);
    expect(violated(claim(0, 10, granted(5)), claim(60_020, 60_030, granted(3)))).toEqual([2]);
  });

  test("concurrent grants are ordered by their tokens", () => {
    const both = [claim(0, 100, granted(2)), claim(0, 100, granted(1)), release(10, 90, 1)];
    expect(violated(...both, complete(110, 120, 2, "paid"))).toEqual([]);
    expect(violated(...both, complete(110, 120, 1, "paid"))).toEqual([4]);
  });
});

describe("5: fingerprints", () => {
  const bound = claim(0, 10, granted(1), { fingerprint: "f1" });
  const other = { fingerprint: "f2" };

  test("a mismatch is refused in every state", () => {
    expect(violated(bound, claim(20, 30, MISMATCH, other))).toEqual([]);
    expect(violated(bound, claim(20, 30, IN_PROGRESS, other))).toEqual([5]);
    expect(violated(bound, release(20, 30, 1), claim(40, 50, granted(2), other))).toEqual([5]);
    expect(violated(bound, release(20, 30, 1), claim(40, 50, MISMATCH, other))).toEqual([]);
    expect(violated(bound, complete(20, 30, 1, "paid"), claim(40, 50, replayed("paid"), other))).toEqual([5]);
    expect(violated(bound, complete(20, 30, 1, "paid"), claim(40, 50, MISMATCH, other))).toEqual([]);
    expect(violated(bound, claim(2000, 2010, granted(2), other))).toEqual([5]);
  });

  test("a mismatch needs two fingerprints", () => {
    expect(violated(bound, claim(20, 30, IN_PROGRESS))).toEqual([]);
    expect(violated(bound, claim(20, 30, MISMATCH))).toEqual([5]);
    expect(violated(claim(0, 10, granted(1)), claim(20, 30, MISMATCH, other))).toEqual([5]);
  });

  test("a claim without a fingerprint does not bind the key; the next one's does", () => {
    const rebound = [claim(0, 10, granted(1)), release(20, 30, 1), claim(40, 50, granted(2), other)];
    expect(violated(...rebound, claim(60, 70, MISMATCH, { fingerprint: "f1" }))).toEqual([]);
    expect(violated(...rebound, lookup(60, 70, seen("inProgress", 2, other)))).toEqual([]);
    expect(violated(...rebound, lookup(60, 70, seen("inProgress", 2)))).toEqual([5]);
  });

  test("a forgotten key can be bound to another fingerprint", () => {
    const forgotten = [bound, admin(20, 30, { kind: "forget" })];
    expect(violated(...forgotten, claim(40, 50, granted(2), other))).toEqual([]);
    expect(violated(bound, claim(40, 50, granted(2), other))).toEqual([5]);
  });
});

describe("HOLD", () => {
  const held = claim(0, 10, granted(1));

  test("an expired claim is ambiguous; only one that accepts ambiguity takes over", () => {
    expect(violatedUnderHold(held, claim(1100, 1110, AMBIGUOUS))).toEqual([]);
    expect(violatedUnderHold(held, claim(1100, 1110, granted(2)))).toEqual([1]);
    expect(violatedUnderHold(held, claim(1100, 1110, granted(2), { acceptAmbiguous: true }))).toEqual([]);
    expect(violatedUnderHold(held, claim(500, 510, granted(2), { acceptAmbiguous: true }))).toEqual([1]);
  });

  test("no key is ambiguous while the lease runs, nor under RECLAIM", () => {
    expect(violatedUnderHold(held, claim(900, 990, AMBIGUOUS))).toEqual([1]);
    expect(violated(held, claim(1100, 1110, AMBIGUOUS))).toEqual([9]);
  });

  test("an administrator resolves an ambiguous key", () => {
    const ambiguous = [held, claim(1100, 1110, AMBIGUOUS)];
    const done = admin(1200, 1210, { kind: "adminComplete", result: { hash: "paid" } });
    expect(violatedUnderHold(...ambiguous, done, claim(1300, 1310, replayed("paid")))).toEqual([]);
    const given = admin(1200, 1210, { kind: "adminRelease" });
    expect(violatedUnderHold(...ambiguous, given, claim(1300, 1310, granted(2)))).toEqual([]);
    expect(violatedUnderHold(...ambiguous, given, claim(1300, 1310, AMBIGUOUS))).toEqual([9]);
  });

  test("a claim that marks is held from its begin on, or after an unknown outcome", () => {
    const marks = { marksBegin: true };
    const pending = claim(0, 10, granted(1), marks);
    const next = claim(1200, 1210, granted(2));
    const begun = (returns: number) => extend(20, returns, 1, OK, { begin: true });
    expect(violatedUnderHold(pending, extend(20, 30, 1), next)).toEqual([]);
    expect(violatedUnderHold(pending, begun(30), next)).toEqual([1]);
    expect(violatedUnderHold(pending, begun(30), claim(1200, 1210, AMBIGUOUS))).toEqual([]);
    for (const outcome of [granted(2), AMBIGUOUS])
      expect(violatedUnderHold(pending, begun(LOST), claim(1200, 1210, outcome))).toEqual([]);
    const accepting = claim(1200, 1210, granted(2), { ...marks, acceptAmbiguous: true });
    expect(violatedUnderHold(held, accepting, claim(2400, 2410, granted(3)))).toEqual([1]);
    expect(violatedUnderHold(pending, accepting, claim(2400, 2410, granted(3)))).toEqual([]);
  });

  test("a claim that is given back counts no attempt, and its token is not granted again", () => {
    const found = [held, claim(1100, 1110, granted(2, 2), { acceptAmbiguous: true })];
    const back = (returns: number, from = 1200) => release(from, returns, 2, OK, { giveBack: true });
    const next = (token: number, attempt: number) =>
      claim(1300, 1310, granted(token, attempt), { acceptAmbiguous: true });
    expect(violatedUnderHold(...found, back(1210), back(1230, 1220), next(4, 2))).toEqual([]);
    expect(violatedUnderHold(...found, back(1210), next(4, 3))).toEqual([1]);
    expect(violatedUnderHold(...found, back(1210), next(2, 2))).toEqual([2]);
    expect(violatedUnderHold(...found, back(1210), complete(1220, 1230, 1, "late"))).toEqual([]);
    expect(violatedUnderHold(...found, complete(1220, 1230, 1, "late"))).toEqual([4]);
    expect(violatedUnderHold(...found, back(1210), claim(1300, 1310, granted(4)))).toEqual([1]);
    expect(violatedUnderHold(...found, back(1210), extend(1220, 1230, 2))).toEqual([4]);
    expect(violatedUnderHold(...found, back(LOST), next(4, 2))).toEqual([]);
    expect(violatedUnderHold(held, back(30, 20), claim(40, 50, granted(4, 2)))).toEqual([4]);
    expect(
      violatedUnderHold(held, release(20, 30, 1, OK, { giveBack: true }), claim(40, 50, granted(2, 2))),
    ).toEqual([]);
  });

  test("with reclaim_within, an expired claim is ambiguous from that time after the first one on", () => {
    const within = (...operations: readonly Operation[]) =>
      invariantsOf(checkHistory(scenario(operations, { reclaimWithinMs: 2000 })));
    const second = claim(1100, 1110, granted(2));
    expect(within(held, second, claim(2200, 2210, AMBIGUOUS))).toEqual([]);
    expect(within(held, second, claim(2200, 2210, granted(3)))).toEqual([1]);
    expect(within(held, second, lookup(2200, 2210, seen("inProgress", 2)))).toEqual([9]);
    expect(within(held, claim(1100, 1110, AMBIGUOUS))).toEqual([9]);
    expect(within(held, lookup(1100, 1110, seen("inProgress", 1)), second)).toEqual([]);
    const twice = [release(1120, 1130, 2), release(1140, 1150, 2)];
    const back = [held, second, ...twice, claim(1200, 1210, granted(3, 2))];
    expect(within(...back, release(1220, 1230, 3), claim(2200, 2210, AMBIGUOUS))).toEqual([]);
    expect(within(...back, release(1220, 1230, 3), claim(2200, 2210, granted(4)))).toEqual([1]);
    const accepting = claim(2200, 2210, granted(4), { acceptAmbiguous: true });
    expect(within(...back, accepting, release(2220, 2230, 4), claim(2240, 2250, granted(5)))).toEqual([]);
  });

  test("a lookup shows the same states", () => {
    expect(violatedUnderHold(held, lookup(1100, 1110, seen("ambiguous", 1)))).toEqual([]);
    expect(violatedUnderHold(held, lookup(900, 910, seen("ambiguous", 1)))).toEqual([1]);
    expect(violatedUnderHold(held, lookup(1100, 1110, NOTHING_THERE))).toEqual([3]);
  });
});

describe("9: nothing stays stuck", () => {
  test("IN_PROGRESS is legal until the last moment at which the lease can have ended", () => {
    expect(violated(claim(0, 300, granted(1)), claim(1299, 1310, IN_PROGRESS))).toEqual([]);
    expect(violated(claim(0, 300, granted(1)), claim(1330, 1340, IN_PROGRESS))).toEqual([9]);
  });

  test("IN_PROGRESS after a release or a completion is a violation", () => {
    expect(violated(claim(0, 10, granted(1)), release(20, 30, 1), claim(40, 50, IN_PROGRESS))).toEqual([4]);
    expect(violated(claim(0, 10, granted(1)), complete(20, 30, 1, "x"), claim(40, 50, IN_PROGRESS))).toEqual([
      4,
    ]);
    expect(violated(claim(0, 10, granted(1)), complete(20, 45, 1, "x"), claim(40, 50, IN_PROGRESS))).toEqual(
      [],
    );
  });
});
