import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { RecordJob_Kind, RecordJob_State, RecordJobSchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { describe, expect, it } from "vitest";
import { auditPathOf, changedRecords, shareOf } from "./job-words.ts";

const RESOLVE = create(RecordJobSchema, {
  id: 12n,
  ...{ kind: RecordJob_Kind.RESOLVE, state: RecordJob_State.RUNNING },
  ...{ recordsExamined: 1_000n, recordsMatching: 4_000n, recordsChanged: 998n, recordsLeftAlone: 2n },
});
const RESTAMP = create(RecordJobSchema, {
  ...{ kind: RecordJob_Kind.RESTAMP, state: RecordJob_State.RUNNING },
  ...{ recordsExamined: 1_000n, recordsChanged: 10n, recordsForgotten: 1n },
});

it("a job's progress is a share only where the whole is known", () => {
  expect(shareOf(RESOLVE)).toBe(0.25);
  expect(shareOf(RESTAMP)).toBeUndefined();
  expect(shareOf({ ...RESTAMP, state: RecordJob_State.DONE })).toBe(1);
  expect(shareOf({ ...RESOLVE, recordsExamined: 5_000n })).toBe(1);
});

describe("The records that a job changed", () => {
  it("are listed by the job that resolved them", () => {
    expect(changedRecords(RESOLVE).list?.path).toBe("/records?job=12");
    const path = "/records?namespace=payouts&job=12";
    expect(changedRecords({ ...RESOLVE, namespace: "payouts" }).list?.path).toBe(path);
  });

  it("are among those that were claimed before a change of retention began, and the note says that it is not known which", () => {
    const startsAt = timestampFromDate(new Date("2026-11-23T18:00:00.250Z"));
    const { list, note } = changedRecords({ ...RESTAMP, namespace: "payments", startsAt });
    expect(list?.path).toBe("/records?namespace=payments&before=2026-11-23T18%3A00%3A01.000Z");
    expect(note).toMatch(/does not keep which job/);
  });

  it("are not listed if none is left", () => {
    const forgotten = { ...RESOLVE, recordsForgotten: RESOLVE.recordsChanged };
    for (const job of [
      forgotten,
      { ...RESTAMP, kind: RecordJob_Kind.FORGET },
      { ...RESOLVE, recordsChanged: 0n },
    ])
      expect(changedRecords(job).list).toBeUndefined();
  });

  it("have audit events from the job's start to its end", () => {
    const createdAt = timestampFromDate(new Date("2026-11-23T18:00:00.250Z"));
    const until = "after=2026-11-23T18%3A00%3A00.250Z&before=2026-11-23T18%3A00%3A01.000Z";
    const job = { ...RESOLVE, createdAt, finishedAt: createdAt };
    expect(auditPathOf(job)).toBe(`/audit?action=ResolveAmbiguousRecords&${until}`);
    expect(auditPathOf({ ...job, kind: RecordJob_Kind.RESTAMP })).toBe(`/audit?action=UpdateTenant&${until}`);
  });
});
