import { expect, test } from "vitest";
import { recordIn } from "../../../test/support/calls/domain.ts";
import { type Attempt, attemptsOf } from "./attempt.ts";

function past(fields: Partial<Attempt> = {}): Attempt {
  return {
    number: 1,
    fencingToken: 6n,
    owner: "worker-0",
    claimedAtMs: 1000,
    checkpoint: "",
    recordJob: undefined,
    ending: "superseded",
    endedAtMs: 2000,
    reason: "",
    ...fields,
  };
}

const endings = (attempts: readonly Attempt[]) => attempts.map(({ number, ending }) => `${number} ${ending}`);

test("the newest attempt follows from the record's phase", () => {
  const newest = (["inProgress", "lapsed", "ambiguous", "released", "completed"] as const).map((phase) =>
    attemptsOf(recordIn(phase), []).map(({ ending, endedAtMs }) => [ending, endedAtMs]),
  );
  expect(newest).toEqual([
    [["held", undefined]],
    [["held", undefined]],
    [["held", undefined]],
    [["released", 5000]],
    [["completed", 5000]],
  ]);
});

test("attempts of an earlier life and of a later claim are skipped", () => {
  const others = [
    past({ fencingToken: 5n, claimedAtMs: 999 }),
    past({ fencingToken: 8n, claimedAtMs: 3000 }),
  ];
  expect(endings(attemptsOf(recordIn("inProgress"), [...others, past()]))).toEqual([
    "1 superseded",
    "2 held",
  ]);
});

test("a first attempt with another rounding error is not an earlier life's", () => {
  const claimedAtMs = 999.9999998;
  expect(endings(attemptsOf(recordIn("inProgress"), [past({ claimedAtMs })]))).toEqual([
    "1 superseded",
    "2 held",
  ]);
});

test("a resolution stands for the newest attempt, unless the record was read before it", () => {
  const resolved = past({ number: 2, fencingToken: 7n, ending: "resolved" });
  expect(endings(attemptsOf(recordIn("released"), [resolved]))).toEqual(["2 resolved"]);
  expect(endings(attemptsOf(recordIn("completed"), [resolved]))).toEqual(["2 resolved"]);
  expect(endings(attemptsOf(recordIn("ambiguous"), [resolved]))).toEqual(["2 held"]);
});
