import { expect, test } from "vitest";
import type { Failover } from "./measure.ts";
import { isKept } from "./summary.ts";

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
