import { expect, test } from "vitest";
import { claim, granted, LOST, refused, scenario } from "../history/scenario.ts";
import { reportOf } from "./report.ts";
import type { Round } from "./round.ts";

const history = scenario([
  claim(0, 10, granted(1)),
  claim(20, LOST),
  claim(40, 50, refused("FINGERPRINT_MISMATCH")),
]);
const round: Round = {
  evidence: { history, reads: [], effects: { unfenced: [], fenced: [] }, healedAtMs: 60 },
  judgement: { histories: 1, timeouts: ["key"], violations: [], probedKeys: 0 },
  injections: [
    { fault: "redis-kill", target: "redis", startedAtMs: 5, healedAtMs: 30 },
    { fault: "redis-kill", target: "redis", startedAtMs: 45, healedAtMs: 46 },
  ],
  recoveries: [
    { fault: "redis-kill", client: "client-1", replica: "replica-1", afterMs: 12.4, idleMs: 12.4 },
    { fault: "redis-kill", client: "client-1", replica: "replica-2", afterMs: 2000.6, idleMs: 2000.6 },
  ],
  effects: [
    { fault: "redis-kill", refused: 3, granted: 4, grantedOthers: 5 },
    { fault: "redis-kill", refused: 0, granted: 1, grantedOthers: 0 },
  ],
  loadEndedAtMs: 60,
  accidents: ["replica-1 ended unexpectedly"],
};

test("a report counts answers and faults, and counts accidents and late recoveries as violations", () => {
  expect(reportOf(round, 7, 60_000)).toEqual({
    seed: 7,
    minutes: 1,
    ops: { ok: 1, refused: 1, unknown: 1 },
    errors: {},
    faults: { "redis-kill": 2 },
    histories: 1,
    timeouts: 1,
    violations: 2,
    longest_unavailable_ms: { "redis-kill": 40 },
    longest_recovery_ms: { "redis-kill": 2001 },
    effects: { "redis-kill": { effective: 1, refused: 3, granted: 5, granted_others: 5 } },
  });
});
