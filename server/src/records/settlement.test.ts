import { describe, expect, test } from "vitest";
import { DONE, PHASES, recordIn } from "../../../test/support/calls/domain.ts";
import { Refusal } from "../domain/refusal.ts";
import { answerComplete, completed } from "./complete.ts";
import { answerExtendLease } from "./extend-lease.ts";
import { cachedCompletionOf, type LiveRecord, type Phase } from "./record.ts";
import { answerRelease } from "./release.ts";

const KINDS = Object.keys(PHASES) as Phase["kind"][];
const { id } = recordIn("inProgress");

const SAME_DIGEST = Buffer.alloc(32, 1);

/** Returns each operation's answer from a record, a token and a result. */
const ANSWERS = {
  Complete: (record: LiveRecord | undefined, fencingToken: bigint, resultDigest: Uint8Array) =>
    answerComplete(record, { id, fencingToken, result: DONE, resultDigest, keyRetentionS: undefined }),
  Release: (record: LiveRecord | undefined, fencingToken: bigint) =>
    answerRelease(record, { id, fencingToken, reason: "", giveBack: false }, false),
  ExtendLease: (record: LiveRecord | undefined, fencingToken: bigint) =>
    answerExtendLease(record, { id, fencingToken, leaseMs: undefined, checkpoint: undefined, begin: false }),
};
const OPERATIONS = Object.keys(ANSWERS) as (keyof typeof ANSWERS)[];

/** Returns the kind of the answer, or the reason of the refusal. */
function outcomeOf(
  operation: keyof typeof ANSWERS,
  record: LiveRecord | undefined,
  fencingToken = 7n,
  resultDigest: Uint8Array = SAME_DIGEST,
): string {
  try {
    return ANSWERS[operation](record, fencingToken, resultDigest).kind;
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

describe.each(OPERATIONS)("%s", (operation) => {
  test("without a record is refused with RECORD_NOT_FOUND", () => {
    expect(outcomeOf(operation, undefined)).toBe("RECORD_NOT_FOUND");
  });

  test.each(KINDS)(
    "with an older or a later token is refused with CLAIM_SUPERSEDED when the record is %s",
    (kind) => {
      expect(outcomeOf(operation, recordIn(kind), 6n)).toBe("CLAIM_SUPERSEDED");
      expect(outcomeOf(operation, recordIn(kind), 8n)).toBe("CLAIM_SUPERSEDED");
    },
  );

  test.each(["inProgress", "lapsed", "ambiguous"] as const)("is retried when the record is %s", (kind) => {
    expect(outcomeOf(operation, recordIn(kind))).toBe("contended");
  });
});

describe("of a settled claim", () => {
  test("a Complete with the same result is a repeat, and one with another result is refused", () => {
    expect(outcomeOf("Complete", recordIn("completed"))).toBe("completed");
    expect(outcomeOf("Complete", recordIn("completed"), 7n, Buffer.alloc(32, 9))).toBe("ALREADY_COMPLETED");
    expect(outcomeOf("Complete", recordIn("released"))).toBe("ALREADY_RELEASED");
  });

  test("a Complete with another result is refused even if the stored result has expired", () => {
    const expired = recordIn("completed", { phase: { ...PHASES.completed, result: undefined } });
    expect(outcomeOf("Complete", expired)).toBe("completed");
    expect(outcomeOf("Complete", expired, 7n, Buffer.alloc(32, 9))).toBe("ALREADY_COMPLETED");
  });

  test("a Release of a released claim is a repeat, and of a completed claim is refused", () => {
    expect(outcomeOf("Release", recordIn("released"))).toBe("released");
    expect(outcomeOf("Release", recordIn("completed"))).toBe("ALREADY_COMPLETED");
  });

  test("an ExtendLease is refused", () => {
    expect(outcomeOf("ExtendLease", recordIn("released"))).toBe("ALREADY_RELEASED");
    expect(outcomeOf("ExtendLease", recordIn("completed"))).toBe("ALREADY_COMPLETED");
  });
});

describe("a completion", () => {
  const said = { kind: "completed", completedAtMs: 5000, expiresAtMs: 90_000 };
  const copy = cachedCompletionOf(recordIn("completed"));

  test("contains when it was stored, when the key expires, and whether it is a repeat", () => {
    if (copy === undefined) throw new Error("no copy");
    expect(completed(copy, true)).toEqual({ ...said, alreadyCompleted: false, settles: true, copy });
    const again = ANSWERS.Complete(recordIn("completed"), 7n, SAME_DIGEST);
    expect(again).toEqual({ ...said, alreadyCompleted: true, settles: false, copy });
  });
});
