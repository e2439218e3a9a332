import { describe, expect, test } from "vitest";
import { claimCommand, DONE, PHASES, recordIn } from "../../../test/support/calls/domain.ts";
import { answerClaim, answerFromCompletion, cachedCompletionOf, type Phase } from "./record.ts";

const KINDS = Object.keys(PHASES) as Phase["kind"][];
const ONE = Buffer.alloc(32, 1);
const OTHER = Buffer.alloc(32, 2);

test("only a completed record with its result has a cached part", () => {
  expect(KINDS.filter((kind) => cachedCompletionOf(recordIn(kind)) !== undefined)).toEqual(["completed"]);
  expect(
    cachedCompletionOf(recordIn("completed", { phase: { ...PHASES.completed, result: undefined } })),
  ).toBeUndefined();
});

describe("a claim that was not granted", () => {
  test("is contended if there is no record, or one that can be claimed", () => {
    expect(answerClaim(undefined, claimCommand())).toEqual({ kind: "contended" });
    expect(answerClaim(recordIn("lapsed"), claimCommand())).toEqual({ kind: "contended" });
    expect(answerClaim(recordIn("released"), claimCommand())).toEqual({ kind: "contended" });
  });

  test.each(KINDS)("is a mismatch where the record is %s and bound to another fingerprint", (kind) => {
    const command = claimCommand({ fingerprint: OTHER, claimId: "call-1", acceptAmbiguous: true });
    expect(() => answerClaim(recordIn(kind, { fingerprint: ONE }), command)).toThrow(
      expect.objectContaining({ reason: "FINGERPRINT_MISMATCH" }),
    );
  });

  test.each(KINDS)(
    "is not a mismatch where the record is %s and only one of the two has a fingerprint",
    (kind) => {
      expect(answerClaim(recordIn(kind, { fingerprint: ONE }), claimCommand())).toBeDefined();
      expect(answerClaim(recordIn(kind), claimCommand({ fingerprint: ONE }))).toBeDefined();
      expect(
        answerClaim(recordIn(kind, { fingerprint: ONE }), claimCommand({ fingerprint: ONE })),
      ).toBeDefined();
    },
  );

  test("is told who is at it", () => {
    expect(answerClaim(recordIn("inProgress"), claimCommand())).toEqual({
      kind: "inProgress",
      owner: "worker-1",
      firstClaimedAtMs: 1000,
      attempt: 2,
      leaseExpiresAtMs: 32_000,
      leaseRemainingMs: 20_000,
      expiresAtMs: 90_000,
      answeredAtMs: 12_000,
    });
  });

  test("recovers the caller's own claim by its claim id, while it is in progress only", () => {
    const again = claimCommand({ claimId: "call-1" });
    expect(answerClaim(recordIn("inProgress"), again)).toMatchObject({ kind: "claimed", fencingToken: 7n });
    expect(answerClaim(recordIn("ambiguous"), again).kind).toBe("ambiguous");
    expect(answerClaim(recordIn("lapsed"), again).kind).toBe("contended");
    expect(answerClaim(recordIn("released"), again).kind).toBe("contended");
    expect(answerClaim(recordIn("completed"), again).kind).toBe("completed");
  });

  test("that completes its record is recovered by its claim id, also from a copy", () => {
    const itself = { phase: { ...PHASES.completed, resultDigest: new Uint8Array(0) } };
    const record = recordIn("completed", itself);
    const copy = cachedCompletionOf(record);
    if (copy === undefined) throw new Error("the record has no copy");
    const kindsFor = (command: Parameters<typeof claimCommand>[0]) => [
      answerClaim(record, claimCommand(command)).kind,
      answerFromCompletion(copy, claimCommand(command)).kind,
    ];
    expect(kindsFor({ leaseMs: 0, claimId: "call-1" })).toEqual(["recorded", "recorded"]);
    expect(kindsFor({ leaseMs: 0, claimId: "call-2" })).toEqual(["completed", "completed"]);
    expect(kindsFor({ leaseMs: 1000, claimId: "call-1" })).toEqual(["completed", "completed"]);
    const otherwise = recordIn("completed");
    expect(answerClaim(otherwise, claimCommand({ leaseMs: 0, claimId: "call-1" })).kind).toBe("completed");
    const anonymous = recordIn("completed", { ...itself, claimId: "" });
    expect(answerClaim(anonymous, claimCommand({ leaseMs: 0 })).kind).toBe("completed");
  });

  test("recovers nothing without a claim id", () => {
    const anonymous = recordIn("inProgress", { claimId: "" });
    expect(answerClaim(anonymous, claimCommand({ claimId: "" })).kind).toBe("inProgress");
  });

  test("is answered with the result, as long as there is one", () => {
    expect(answerClaim(recordIn("completed"), claimCommand())).toMatchObject({
      kind: "completed",
      completedAtMs: 5000,
      result: DONE,
      expiresAtMs: 90_000,
    });
    const expired = recordIn("completed", { phase: { ...PHASES.completed, result: undefined } });
    expect(answerClaim(expired, claimCommand())).toMatchObject({ kind: "completed", result: undefined });
  });

  test("is ambiguous unless it accepts that", () => {
    const checkpoint = { name: "charged", state: Buffer.from("17") };
    expect(answerClaim(recordIn("ambiguous", { checkpoint }), claimCommand())).toEqual({
      kind: "ambiguous",
      owner: "worker-1",
      firstClaimedAtMs: 1000,
      attempt: 2,
      leaseExpiredAtMs: 32_000,
      checkpoint,
      expiresAtMs: 90_000,
      answeredAtMs: 12_000,
    });
    expect(answerClaim(recordIn("ambiguous"), claimCommand({ acceptAmbiguous: true })).kind).toBe(
      "contended",
    );
  });
});

describe("a claim of which there is a copy", () => {
  const answerTo = (answer: () => unknown) => {
    try {
      return answer();
    } catch (error) {
      return error;
    }
  };

  test.each([
    [undefined, undefined],
    [undefined, ONE],
    [ONE, undefined],
    [ONE, ONE],
    [ONE, OTHER],
  ])("is answered what the record itself would answer", (fingerprint, brought) => {
    const record = recordIn("completed", { fingerprint });
    const copy = cachedCompletionOf(record);
    if (copy === undefined) throw new Error("there is no copy");
    const command = claimCommand({ fingerprint: brought });
    const fromRecord = answerTo(() => answerClaim(record, command));
    const withoutRecord =
      fromRecord instanceof Error
        ? fromRecord
        : { ...Object(fromRecord), record: undefined, answeredAtMs: undefined };
    expect(answerTo(() => answerFromCompletion(copy, command))).toEqual(withoutRecord);
  });

  test.each(KINDS.filter((kind) => kind !== "completed"))("there is none of a record that is %s", (kind) => {
    expect(cachedCompletionOf(recordIn(kind))).toBeUndefined();
  });

  test("there is none of a record whose result is gone", () => {
    const phase = { ...PHASES.completed, result: undefined };
    expect(cachedCompletionOf(recordIn("completed", { phase }))).toBeUndefined();
  });
});
