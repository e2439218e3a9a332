import { describe, expect, test } from "vitest";
import { checkEffects, type Effect, FencedProvider } from "./effects.ts";
import type { NamespacePolicy, Operation } from "./operation.ts";
import { admin, claim, complete, extend, granted, release, scenario } from "./scenario.ts";

const NAME = { tenant: "acme", namespace: "charges", key: "order-1" };
const HOLD = { onLeaseExpiry: "HOLD" } as const;
const held = claim(0, 10, granted(1));
const takenOver = [held, claim(1500, 1510, granted(2))];

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
  test("one effect by a claim that was granted is as it must be", () => {
    expect(problems([held, complete(30, 40, 1, "paid")], [charge(1, 20)])).toEqual([]);
  });

  test("a second effect after a lost lease is explained under RECLAIM, and not under HOLD", () => {
    const effects = [charge(2, 1600), charge(1, 1700)];
    expect(problems(takenOver, effects)).toEqual([]);
    expect(problems(takenOver, effects, HOLD)).toHaveLength(1);
  });

  test("one who accepts ambiguity accepts a second effect", () => {
    const accepting = [held, claim(1500, 1510, granted(2), { acceptAmbiguous: true })];
    expect(problems(accepting, [charge(1, 20), charge(2, 1600)], HOLD)).toEqual([]);
  });

  test("a second effect under a lease that ran is not explained", () => {
    const effects = [charge(1, 20), charge(2, 1600)];
    expect(problems([held, extend(900, 910, 1), claim(1500, 1510, granted(2))], effects)).toHaveLength(1);
    expect(problems([held, extend(400, 410, 1), claim(1500, 1510, granted(2))], effects)).toEqual([]);
  });

  test("one who releases after the effect is to blame, and so is one who completed", () => {
    const effects = [charge(1, 20), charge(2, 1600)];
    expect(problems([held, release(30, 40, 1), claim(1500, 1510, granted(2))], effects)).toHaveLength(1);
    expect(problems([held, complete(30, 40, 1, "x"), claim(1500, 1510, granted(2))], effects)).toHaveLength(
      1,
    );
  });

  test("a forgotten key may have its effect again", () => {
    const again = [
      held,
      complete(30, 40, 1, "x"),
      admin(50, 60, { kind: "forget" }),
      claim(70, 80, granted(2)),
    ];
    expect(problems(again, [charge(1, 20), charge(2, 90)])).toEqual([]);
  });

  test("a key that a claim asked to be forgotten soon may have its effect again", () => {
    const done = [claim(0, 10, granted(1), { retentionMs: 1400 }), complete(30, 40, 1, "x")];
    const effects = [charge(1, 20), charge(2, 1600)];
    expect(problems([...done, claim(1500, 1510, granted(2))], effects)).toEqual([]);
    expect(problems([held, complete(30, 40, 1, "x"), claim(1500, 1510, granted(2))], effects)).toHaveLength(
      1,
    );
  });

  test("two effects by one token are never explained", () => {
    expect(problems([held], [charge(1, 20), charge(1, 30)])).toEqual(["two effects by token 1"]);
  });

  test("an effect needs a claim, and a completion needs an effect", () => {
    expect(problems([held], [charge(1, 20), charge(7, 30)])).toEqual([
      "an effect by token 7, which nobody was granted",
    ]);
    expect(problems([held, complete(30, 40, 1, "x")], [])).toEqual(["#2: completed, and nothing happened"]);
    const failed = complete(30, 40, 1, "x", undefined, { isFailure: true });
    expect(problems([held, failed], [])).toEqual([]);
  });
});

describe("fenced", () => {
  test("two effects are never explained", () => {
    const fenced = [charge(1, 20), charge(2, 1600)];
    const violations = checkEffects(scenario(takenOver), { unfenced: [], fenced });
    expect(violations.map(({ message }) => message)).toEqual(["a fenced provider had more than one effect"]);
  });

  test("the provider refuses a holder that was overtaken, and tells its successor what was done", () => {
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
