import { create } from "@bufbuild/protobuf";
import { RecordJob_Kind, RecordJob_State, RecordJobSchema } from "@onceward/client/proto";
import { describe, expect, it } from "vitest";
import { isUnfinished, progressOf } from "./job-words.ts";

const RESOLVE = create(RecordJobSchema, {
  id: 12n,
  ...{ kind: RecordJob_Kind.RESOLVE, state: RecordJob_State.RUNNING },
  ...{ recordsExamined: 1_000n, recordsMatching: 4_000n, recordsChanged: 998n, recordsLeftAlone: 2n },
});
const RESTAMP = create(RecordJobSchema, {
  ...{ kind: RecordJob_Kind.RESTAMP, state: RecordJob_State.RUNNING },
  ...{ recordsExamined: 1_000n, recordsChanged: 10n, recordsForgotten: 1n },
});

describe("A job's progress", () => {
  it("names what was changed, and what was not", () => {
    expect(progressOf(RESOLVE)).toBe("998 of 4,000 records resolved, 2 left alone");
    expect(progressOf(RESTAMP)).toBe("10 of 1,000 records changed, 1 of them forgotten at once");
    expect(progressOf({ ...RESTAMP, kind: RecordJob_Kind.FORGET })).toBe("10 of 1,000 records forgotten");
  });

  it("ends when the job is done or cancelled", () => {
    const states = [
      RecordJob_State.WAITING,
      RecordJob_State.RUNNING,
      RecordJob_State.DONE,
      RecordJob_State.CANCELLED,
    ];
    expect(states.filter((state) => isUnfinished({ state }))).toEqual([
      RecordJob_State.WAITING,
      RecordJob_State.RUNNING,
    ]);
  });
});
