import { expect, test } from "vitest";
import type { FinalRead } from "../history/final-reads.ts";
import { claim, complete, granted, IN_PROGRESS, LOST, scenario } from "../history/scenario.ts";
import { describeFailure, type Evidence, judge } from "./judge.ts";

const NAME = { tenant: "acme", namespace: "charges", key: "order-1" };
const read: FinalRead = {
  ...NAME,
  seen: { state: "completed", token: 1, hash: "paid" },
  invokedAtMs: 9000,
  returnedAtMs: 9010,
};
const charged = { unfenced: [{ ...NAME, token: 1, atMs: 15 }], fenced: [] };
const held = claim(0, 10, granted(1));
const paid = complete(20, 30, 1, "paid");

function evidence(over: Partial<Evidence> = {}): Evidence {
  return { history: scenario([held, paid]), reads: [read], effects: charged, healedAtMs: 40, ...over };
}

const messages = (over: Partial<Evidence>) => judge(evidence(over)).violations.map(({ message }) => message);

test("a history that the contract allows passes every oracle", () => {
  expect(judge(evidence())).toEqual({ histories: 1, timeouts: [], violations: [], probedKeys: 0 });
});

test("a completion that is missing at the end is a violation", () => {
  expect(messages({ reads: [{ ...read, seen: undefined }] })).toEqual([
    "final-0: absent although its retention runs",
  ]);
});

test("a completion without an effect is a violation", () => {
  expect(messages({ effects: { unfenced: [], fenced: [] } })).toEqual(["#2: completed without an effect"]);
});

test("a key that stays stuck after all faults have healed is a violation", () => {
  const stuck = scenario([claim(0, LOST), claim(8000, 8010, IN_PROGRESS)]);
  const over = {
    history: stuck,
    reads: [{ ...read, seen: undefined }],
    effects: { unfenced: [], fenced: [] },
  };
  expect(messages(over)).toContainEqual(expect.stringContaining("when every lease had ended"));
});

test("INTERNAL is a violation under any fault", () => {
  const failure = { code: "Internal", by: "service", message: "An internal error." } as const;
  const broken = { ...claim(0, LOST), answer: { kind: "unknown", reason: "INTERNAL", failure } as const };
  const over = {
    history: scenario([broken]),
    reads: [{ ...read, seen: undefined }],
    effects: { unfenced: [], fenced: [] },
  };
  expect(messages(over)).toEqual(["#1: the service failed with Internal: An internal error."]);
});

test("a described failure leaves out the operations that are not needed for it", () => {
  const history = scenario([held, claim(40, 45, IN_PROGRESS), claim(50, 60, granted(2))]);
  const reads = [{ ...read, seen: { state: "inProgress" as const, token: 2 } }];
  const [violation] = judge(evidence({ history, reads, effects: { unfenced: [], fenced: [] } })).violations;
  if (violation === undefined) throw new Error("nothing was found");
  const text = describeFailure(violation, history, reads);
  expect(text).toContain("granted while another claim's lease runs");
  expect(text).not.toContain("IN_PROGRESS");
});
