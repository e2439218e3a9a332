import { describe, expect, test } from "vitest";
import { checkEffects, type Effect, FencedProvider } from "./effects.ts";
import type { NamespacePolicy, Operation } from "./operation.ts";
import { admin, claim, complete, extend, granted, LOST, release, scenario } from "./scenario.ts";

const NAME = { tenant: "acme", namespace: "charges", key: "order-1" };
const HOLD = { onLeaseExpiry: "HOLD" } as const;
const held = claim(0, 10, granted(1));
const takenOver = [held, claim(1500, 1510, granted(2))];

const NOT_LOST = "an effect by token 2 after one by 1, whose holder had not lost the key";

function charge(token: number, atMs: number): Effect {
  return { ...NAME, token, atMs };
}

function problems(
  operations: readonly Operation[],
  unfenced: Effect[],
  policy: Partial<NamespacePolicy> = {},
) {
  return checkEffects(scenario(operations, policy), { unfenced, fenced: [] }).map(({ message }) => message);
}

describe("unfenced", () => {
  test("one effect by a granted claim is allowed", () => {
    expect(problems([held, complete(30, 40, 1, "paid")], [charge(1, 20)])).toEqual([]);
  });

  test("a second effect after a lost lease is allowed under RECLAIM, and not under HOLD", () => {
    const effects = [charge(2, 1600), charge(1, 1700)];
    expect(problems(takenOver, effects)).toEqual([]);
    expect(problems(takenOver, effects, HOLD)).toEqual([NOT_LOST]);
  });

  test("a claim that accepts ambiguity allows a second effect", () => {
    const accepting = [held, claim(1500, 1510, granted(2), { acceptAmbiguous: true })];
    expect(problems(accepting, [charge(1, 20), charge(2, 1600)], HOLD)).toEqual([]);
  });

  test("a second effect while the lease runs is a violation", () => {
    const effects = [charge(1, 20), charge(2, 1600)];
    expect(problems([held, extend(900, 910, 1), claim(1500, 1510, granted(2))], effects)).toEqual([NOT_LOST]);
    expect(problems([held, extend(400, 410, 1), claim(1500, 1510, granted(2))], effects)).toEqual([]);
  });

  test("a lease runs from a claim whose reply was lost, if the token was answered to its claim id", () => {
    const effects = [charge(1, 700), charge(2, 1600)];
    const next = claim(1500, 1510, granted(2));
    const recovered = claim(600, 610, granted(1), { claimId: "a" });
    expect(problems([claim(0, LOST, undefined, { claimId: "a" }), recovered, next], effects)).toEqual([]);
    expect(problems([claim(0, LOST, undefined, { claimId: "b" }), recovered, next], effects)).toEqual([
      NOT_LOST,
    ]);
  });

  test("a second effect after a release or a completion by the first holder is a violation", () => {
    const effects = [charge(1, 20), charge(2, 1600)];
    expect(problems([held, release(30, 40, 1), claim(1500, 1510, granted(2))], effects)).toEqual([NOT_LOST]);
    const completed = [held, complete(30, 40, 1, "x"), claim(1500, 1510, granted(2))];
    expect(problems(completed, effects)).toEqual([NOT_LOST]);
  });

  test("a forgotten key may have a second effect", () => {
    const again = [
      held,
      complete(30, 40, 1, "x"),
      admin(50, 60, { kind: "forget" }),
      claim(70, 80, granted(2)),
    ];
    expect(problems(again, [charge(1, 20), charge(2, 90)])).toEqual([]);
  });

  test("a key whose claim asked for a short retention may have a second effect", () => {
    const done = [claim(0, 10, granted(1), { retentionMs: 1400 }), complete(30, 40, 1, "x")];
    const effects = [charge(1, 20), charge(2, 1600)];
    expect(problems([...done, claim(1500, 1510, granted(2))], effects)).toEqual([]);
    const usual = [held, complete(30, 40, 1, "x"), claim(1500, 1510, granted(2))];
    expect(problems(usual, effects)).toEqual([NOT_LOST]);
  });

  test("two effects by one token are a violation", () => {
    expect(problems([held], [charge(1, 20), charge(1, 30)])).toEqual(["two effects by token 1"]);
  });

  test("an effect needs a claim, and a completion needs an effect", () => {
    expect(problems([held], [charge(1, 20), charge(7, 30)])).toEqual([
      "an effect by token 7, which was never granted",
    ]);
    expect(problems([held, complete(30, 40, 1, "x")], [])).toEqual(["#2: completed without an effect"]);
    const failed = complete(30, 40, 1, "x", undefined, { isFailure: true });
    expect(problems([held, failed], [])).toEqual([]);
  });
});

describe("fenced", () => {
  test("two effects at a fenced provider are a violation", () => {
    const fenced = [charge(1, 20), charge(2, 1600)];
    const violations = checkEffects(scenario(takenOver), { unfenced: [], fenced });
    expect(violations.map(({ message }) => message)).toEqual(["a fenced provider had more than one effect"]);
  });

  test("the fenced provider refuses a superseded holder, and tells its successor that it charged", () => {
    const provider = new FencedProvider();
    expect(provider.open(NAME, 1)).toBe("open");
    expect(provider.open(NAME, 2)).toBe("open");
    expect(provider.charge(NAME, 1, 10)).toBe(false);
    expect(provider.charge(NAME, 2, 20)).toBe(true);
    expect(provider.open(NAME, 1)).toBe("superseded");
    expect(provider.open(NAME, 3)).toBe("charged");
    expect(provider.effects).toEqual([charge(2, 20)]);
  });
});
