import { expect, test } from "vitest";
import type { Failover } from "./measure.ts";
import { describeFailover, formatSummary, isKept } from "./summary.ts";

const nothingLost: Failover = {
  setting: { standing: "synchronous", link: "local" },
  seed: 1,
  acknowledged: { claims: 1200, completes: 1190 },
  lost: { claims: 0, completes: 0 },
  lostForMs: 0,
  tokensAgain: 0,
  downMs: 412.6,
};
const lossy: Failover = {
  ...nothingLost,
  setting: { standing: "asynchronous", link: "slow" },
  seed: 2,
  lost: { claims: 40, completes: 41 },
  lostForMs: 148.2,
};

test("a synchronous standby may lose nothing, and an asynchronous one may", () => {
  expect(isKept(nothingLost)).toBe(true);
  expect(isKept({ ...nothingLost, lost: { claims: 0, completes: 1 } })).toBe(false);
  expect(isKept({ ...nothingLost, tokensAgain: 1 })).toBe(false);
  expect(isKept(lossy)).toBe(true);
});

test("a failover is described in one line", () => {
  expect(describeFailover(lossy)).toBe(
    "asynchronous, 150 ms apart, seed 2: 1200 claims and 1190 completions acknowledged, 40 and 41 lost, " +
      "of the last 148 ms; 0 tokens not above lost ones; answers again after 413 ms",
  );
});

test("the table has a row for each setting, with the least and the most", () => {
  const [, , ...rows] = formatSummary([lossy, nothingLost, { ...lossy, lost: { claims: 2, completes: 41 } }])
    .split("\n")
    .map((row) => row.split(" | ").slice(1));
  expect(rows).toEqual([
    ["2", "2,400, 2,380", "2-40", "41", "148", "0", "413 |"],
    ["1", "1,200, 1,190", "0", "0", "0", "0", "413 |"],
  ]);
});
