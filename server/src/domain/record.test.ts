import { expect, test } from "vitest";
import { PHASES, recordIn } from "../../../test/helpers/calls/domain.ts";
import { cachedCompletionOf, type Phase } from "./record.ts";

test("nothing has a copy but a completed record with its result", () => {
  const kinds = Object.keys(PHASES) as Phase["kind"][];
  expect(kinds.filter((kind) => cachedCompletionOf(recordIn(kind)) !== undefined)).toEqual(["completed"]);
  expect(
    cachedCompletionOf(recordIn("completed", { phase: { ...PHASES.completed, result: undefined } })),
  ).toBeUndefined();
});
