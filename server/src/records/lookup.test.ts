import { describe, expect, test } from "vitest";
import { PHASES, recordIn } from "../../../test/support/calls/domain.ts";
import { Record_State } from "../gen/onceward/v1/record_pb.ts";
import { lookupResponse } from "./lookup.ts";

describe("the reply to a lookup", () => {
  test("has the state of each phase", () => {
    const kinds = Object.keys(PHASES) as (keyof typeof PHASES)[];
    const states = kinds.map((kind) => [kind, lookupResponse(recordIn(kind), 1).record?.state]);
    expect(Object.fromEntries(states)).toEqual({
      inProgress: Record_State.IN_PROGRESS,
      lapsed: Record_State.IN_PROGRESS,
      ambiguous: Record_State.AMBIGUOUS,
      released: Record_State.RELEASED,
      completed: Record_State.COMPLETED,
    });
  });

  test("of an unknown key has no record", () => {
    const { record, serverTime } = lookupResponse(undefined, 7000);
    expect(record).toBeUndefined();
    expect(serverTime).toMatchObject({ seconds: 7n });
  });
});
