import { expect, test } from "vitest";
import { PHASES, recordIn } from "../../../test/helpers/calls/domain.ts";
import { cachedCompletionOf, type Phase } from "./record.ts";

test("only a completed record with its result has a cached part", () => {
  const kinds = Object.keys(PHASES) as Phase["kind"][];
  expect(kinds.filter((kind) => cachedCompletionOf(recordIn(kind)) !== undefined)).toEqual(["completed"]);
  expect(
    cachedCompletionOf(recordIn("completed", { phase: { ...PHASES.completed, result: undefined } })),
  ).toBeUndefined();
});
