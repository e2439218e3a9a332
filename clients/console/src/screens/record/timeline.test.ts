import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Attempt_Ending,
  AttemptSchema,
  Record_State,
  RecordSchema,
} from "@onceward/gen/onceward/v1/record_pb.ts";
import { describe, expect, it } from "vitest";
import { forgottenAttempts, timelineOf } from "./timeline.ts";

const at = (seconds: number) => timestampFromMs(seconds * 1_000);

const SUPERSEDED = create(AttemptSchema, {
  ...{ number: 4, owner: "worker-1", claimedAt: at(0), endedAt: at(60), ending: Attempt_Ending.SUPERSEDED },
  checkpoint: "submitted",
});
const HELD = create(AttemptSchema, {
  ...{ number: 5, claimedAt: at(60), ending: Attempt_Ending.HELD, checkpoint: "charged" },
});

describe("A record's timeline", () => {
  it("has each claim and how it ended, oldest first", () => {
    const record = create(RecordSchema, { state: Record_State.IN_PROGRESS, expiresAt: at(900) });
    const events = timelineOf({ ...record, leaseExpiresAt: at(90) }, [SUPERSEDED, HELD]);
    expect(events.map(({ what, attempt }) => [what, attempt])).toEqual([
      ["Claimed", 4],
      ["Lost to the next claim, after its lease", 4],
      ["Claimed", 5],
      ["Lease ends, unless the holder extends it", 5],
      ["Key is forgotten: a duplicate is a new operation", undefined],
    ]);
    expect(events.map(({ isDue }) => isDue)).toEqual([undefined, undefined, undefined, true, true]);
    expect(events[0]).toMatchObject({ owner: "worker-1", checkpoint: "" });
    expect(events[1]).toMatchObject({ heldMs: 60_000, checkpoint: "submitted", tone: "attention" });
    expect(events[2]).toMatchObject({ owner: "", checkpoint: "charged" });
    expect(forgottenAttempts([SUPERSEDED, HELD])).toBe(3);
    expect(forgottenAttempts([])).toBe(0);
  });

  it("shows when a record became ambiguous", () => {
    const record = create(RecordSchema, { state: Record_State.AMBIGUOUS, leaseExpiresAt: at(90) });
    expect(timelineOf(record, [HELD]).at(-1)).toMatchObject({ at: at(90), tone: "attention" });
  });

  it("keeps the end of a lease that an administrator's decision followed", () => {
    const resolved = { ...HELD, endedAt: at(500), ending: Attempt_Ending.RESOLVED, reason: "paid" };
    const record = create(RecordSchema, { state: Record_State.COMPLETED, leaseExpiresAt: at(62) });
    const events = timelineOf(record, [SUPERSEDED, resolved]).slice(2);
    expect(events.map(({ what, heldMs }) => [what, heldMs])).toEqual([
      ["Claimed", undefined],
      ["Lease ended without an answer", 2_000],
      ["Resolved by an administrator", undefined],
    ]);
    expect(events[1]).toMatchObject({ at: at(62), tone: "attention", checkpoint: "charged" });
    expect(events[2]).toMatchObject({ reason: "paid" });
    expect(events[2]?.checkpoint).toBeUndefined();
  });

  it("of a completed record has no lease, and both ends of retention", () => {
    const ended = { ...HELD, endedAt: at(70), ending: Attempt_Ending.RESOLVED, reason: "paid" };
    const record = create(RecordSchema, {
      ...{
        state: Record_State.COMPLETED,
        leaseExpiresAt: at(90),
        resultExpiresAt: at(500),
        expiresAt: at(900),
      },
    });
    const events = timelineOf(record, [ended]);
    expect(events.map(({ id }) => id)).toEqual(["claim 5", "end 5", "result", "record"]);
    expect(events[1]).toMatchObject({ what: "Resolved by an administrator", reason: "paid", heldMs: 10_000 });
  });
});
