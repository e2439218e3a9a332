import { describe, expect, test } from "vitest";
import { LATE_KEY_GRACE_MS } from "./late-keys.ts";
import type { Answer, Operation, Restore } from "./operation.ts";
import {
  claim,
  complete,
  granted,
  LOST,
  refused,
  replayed,
  violated,
  violatedWithLateKeys,
} from "./scenario.ts";

const TOO_OLD = refused("KEY_TOO_OLD");
const GONE: Answer = { kind: "completed" };
/** The retention of the scenario's policy. */
const RETENTION_MS = 60_000;
const RECORD_ENDED_MS = RETENTION_MS + LATE_KEY_GRACE_MS + 5000;
/** A key that was created when the history begins. */
const NEW = { keyCreatedAtMs: 0 };

const PAID = [claim(0, 10, granted(1), NEW), complete(20, 30, 1, "paid")];

describe("20: one life of a key, where late keys are refused", () => {
  test("a late repeat is answered by the record while there is one, and refused afterwards", () => {
    const soon = claim(100_000, 100_010, GONE, NEW);
    const late = claim(RECORD_ENDED_MS, RECORD_ENDED_MS + 10, TOO_OLD, NEW);
    expect(violatedWithLateKeys([...PAID, soon, late])).toEqual([]);
  });

  test("a second life is a violation, and without the policy it is not", () => {
    const second = claim(RECORD_ENDED_MS, RECORD_ENDED_MS + 10, granted(2), NEW);
    expect(violatedWithLateKeys([...PAID, second])).toEqual([20]);
    expect(violated(...PAID, second)).toEqual([]);
  });

  test("a second life after a first one whose grant was lost is a violation", () => {
    const lost = claim(0, LOST, undefined, NEW);
    const seen = claim(1500, 1510, granted(2, 2), NEW);
    const second = claim(RECORD_ENDED_MS + 2000, RECORD_ENDED_MS + 2010, granted(3, 1), NEW);
    expect(violatedWithLateKeys([lost, seen, second])).toEqual([20]);
  });

  test("a first claim of a key that is too old, or of which the time is unknown, is not granted", () => {
    const old = { keyCreatedAtMs: -70_000 };
    expect(violatedWithLateKeys([claim(0, 10, granted(1), old)])).toEqual([20]);
    expect(violatedWithLateKeys([claim(0, 10, granted(1))])).toEqual([20]);
    expect(violatedWithLateKeys([claim(0, 10, TOO_OLD, old)])).toEqual([]);
  });

  test("a young key, or one with a record, is not refused as too old", () => {
    expect(violatedWithLateKeys([claim(0, 10, TOO_OLD, NEW)])).toEqual([8]);
    expect(violatedWithLateKeys([...PAID, claim(100_000, 100_010, TOO_OLD, NEW)])).toEqual([3]);
    expect(violated(claim(0, 10, TOO_OLD, { keyCreatedAtMs: -70_000 }))).toEqual([8]);
  });
});

describe("a restore", () => {
  const restore: Restore = { copiedFromMs: 100, copiedToMs: 110, restoredFromMs: 5000, restoredToMs: 6000 };
  const restored = (operations: readonly Operation[]) => violatedWithLateKeys(operations, [restore]);

  test("takes back what was written since the copy, and a key from before it is refused", () => {
    const lost = [claim(200, 210, granted(1), NEW), complete(220, 230, 1, "paid")];
    expect(restored([...lost, claim(7000, 7010, TOO_OLD, NEW)])).toEqual([]);
    expect(restored([...lost, claim(7000, 7010, granted(2), NEW)])).toEqual([20]);
  });

  test("keeps what was written before the copy", () => {
    expect(restored([...PAID, claim(7000, 7010, replayed("paid"), NEW)])).toEqual([]);
    expect(restored([...PAID, claim(7000, 7010, TOO_OLD, NEW)])).toEqual([3]);
  });

  test("takes back a completion, after which the same life continues", () => {
    const held = claim(0, 10, granted(1), NEW);
    const completed = complete(200, 210, 1, "paid");
    expect(restored([held, completed, claim(7000, 7010, granted(2, 2), NEW)])).toEqual([]);
    expect(restored([held, completed, claim(7000, 7010, granted(2, 1), NEW)])).not.toEqual([]);
  });

  test("does not excuse what comes later", () => {
    const key = { keyCreatedAtMs: 7500 };
    const first = [claim(8000, 8010, granted(1), key), complete(8020, 8030, 1, "paid")];
    expect(restored([...first, claim(8100, 8110, granted(2), key)])).not.toEqual([]);
    expect(restored([...first, claim(8100, 8110, TOO_OLD, key)])).not.toEqual([]);
  });
});
