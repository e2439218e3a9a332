import { expect, test } from "vitest";
import { PHASES, recordIn } from "../../../test/helpers/calls/domain.ts";
import { copyOf, type Phase } from "./record.ts";

test("nothing has a copy but a completed record with its result", () => {
  const kinds = Object.keys(PHASES) as Phase["kind"][];
  expect(kinds.filter((kind) => copyOf(recordIn(kind)) !== undefined)).toEqual(["completed"]);
  expect(
    copyOf(recordIn("completed", { phase: { ...PHASES.completed, result: undefined } })),
  ).toBeUndefined();
});
