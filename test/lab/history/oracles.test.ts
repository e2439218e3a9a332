import { describe, expect, test } from "vitest";
import { checkHistory } from "./check.ts";
import { type FinalRead, withFinalReads } from "./final-reads.ts";
import { checkLiveness } from "./liveness.ts";
import type { Operation, SeenRecord } from "./operation.ts";
import {
  claim,
  complete,
  granted,
  IN_PROGRESS,
  invariantsOf,
  LOST,
  refused,
  replayed,
  scenario,
} from "./scenario.ts";

const NAME = { tenant: "acme", namespace: "charges", key: "order-1" };
const held = claim(0, 10, granted(1));

function read(seen: SeenRecord | undefined, key = NAME.key): FinalRead {
  return { ...NAME, key, seen, invokedAtMs: 500, returnedAtMs: 510 };
}

describe("the final reads", () => {
  const check = (operations: Operation[], ...reads: FinalRead[]) =>
    invariantsOf(checkHistory(withFinalReads(scenario(operations), reads)));

  test("an acknowledged completion must be found", () => {
    const done = [held, complete(20, 30, 1, "paid")];
    expect(check(done, read({ state: "completed", token: 1, hash: "paid" }))).toEqual([]);
    expect(check(done, read({ state: "inProgress", token: 1 }))).toEqual([4]);
    expect(check(done, read(undefined))).toEqual([3]);
  });

  test("a completion of unknown outcome may be found or not", () => {
    const maybe = [held, complete(20, LOST, 1, "paid")];
    expect(check(maybe, read({ state: "completed", token: 1, hash: "paid" }))).toEqual([]);
    expect(check(maybe, read({ state: "inProgress", token: 1 }))).toEqual([]);
    expect(check(maybe, read({ state: "released", token: 1 }))).toEqual([4]);
  });

  test("a refused claim leaves no record", () => {
    const turnedDown = [claim(0, 10, refused("INVALID_REQUEST"))];
    expect(check(turnedDown, read(undefined))).toEqual([]);
    expect(check(turnedDown, read({ state: "inProgress", token: 1 }))).toEqual([1]);
  });

  test("a key that no operation names must have no record", () => {
    const mine = read({ state: "inProgress", token: 1 });
    expect(check([held], mine, read(undefined, "order-2"))).toEqual([]);
    expect(check([held], mine, read({ state: "inProgress", token: 2 }, "order-2"))).toEqual([1]);
  });

  test("a key that was not read at the end is an error", () => {
    expect(() => withFinalReads(scenario([held]), [])).toThrow("was not read at the end");
  });
});

describe("liveness", () => {
  const stuck = (healedAtMs: number, ...operations: Operation[]) =>
    checkLiveness(scenario(operations), { healedAtMs }).violations.map(({ invariant }) => invariant);

  test("a key is free again 2 s after the lease's end, also with unknown outcomes", () => {
    expect(stuck(50, held, claim(20, LOST), claim(3100, 3110, IN_PROGRESS))).toEqual([9]);
    expect(stuck(50, held, claim(20, LOST), claim(3100, 3110, granted(2)))).toEqual([]);
    expect(stuck(50, held, claim(20, LOST), claim(2500, 2510, IN_PROGRESS))).toEqual([]);
  });

  test("a claim is answered once faults have healed", () => {
    expect(stuck(1000, claim(4000, LOST))).toEqual([9]);
    expect(stuck(3000, claim(4000, LOST))).toEqual([]);
  });

  test("a claim during another one is not judged", () => {
    expect(stuck(0, claim(4000, 4010, granted(1)), claim(4005, 4020, IN_PROGRESS))).toEqual([]);
    expect(stuck(0, claim(4000, 4010, replayed("paid")), claim(4005, 4020, IN_PROGRESS))).toEqual([9]);
  });

  test("keys that were claimed late enough are counted", () => {
    expect(checkLiveness(scenario([held]), { healedAtMs: 50 }).probedKeys).toBe(0);
    expect(checkLiveness(scenario([claim(3000, 3010, granted(1))]), { healedAtMs: 50 }).probedKeys).toBe(1);
  });
});
