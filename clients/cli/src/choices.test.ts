import { Record_State } from "@onceward/client/proto";
import { InvalidArgumentError } from "commander";
import { expect, test } from "vitest";
import { parseByteCount } from "./arguments.ts";
import { choiceParser, choicesOf } from "./choices.ts";
import { enumName } from "./output.ts";

const STATES = choicesOf(Record_State);
const parse = choiceParser(STATES, { pending: Record_State.IN_PROGRESS });

test("the choices of an enum are the contract's names in lower case, without the value for unset", () => {
  expect(STATES).toEqual({ in_progress: 1, completed: 2, released: 3, ambiguous: 4 });
});

test("the spelling that is printed can be typed", () => {
  for (const state of Object.values(STATES)) expect(parse(enumName(Record_State, state))).toBe(state);
});

test.each(["in_progress", "in-progress", "IN_PROGRESS", "In Progress", "STATE_IN_PROGRESS", "pending"])(
  "%s is a spelling of in_progress",
  (text) => expect(parse(text)).toBe(Record_State.IN_PROGRESS),
);

test.each(["progress", "not_completed", "unspecified", "STATE_", "", "toString"])(
  "%j is not a choice, and the message names the choices",
  (text) => {
    expect(() => parse(text)).toThrow(InvalidArgumentError);
    expect(() => parse(text)).toThrow("in_progress, completed, released, ambiguous");
  },
);

test("bytes are a number, or one with a binary unit", () => {
  expect(["512", "64KiB", "64kib", "1MiB", "5GiB"].map(parseByteCount)).toEqual([
    512,
    65_536,
    65_536,
    1_048_576,
    5 * 2 ** 30,
  ]);
  for (const wrong of ["64KB", "1.5MiB", "-1", "", "9999999999TiB"]) {
    expect(() => parseByteCount(wrong)).toThrow(InvalidArgumentError);
  }
});
