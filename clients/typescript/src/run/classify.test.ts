import { expect, test } from "vitest";
import { terminalErrorOf } from "./classify.ts";
import { TerminalError } from "../errors/errors.ts";

class CardError extends Error {
  override readonly name = "CardError";
  readonly details = { code: 51 };
}

test("an error that is taken for terminal is told by its name, message and details, with itself as the cause", () => {
  const cause = new CardError("declined");
  expect(terminalErrorOf(cause, () => "terminal")).toMatchObject({
    name: "CardError",
    message: "declined",
    details: { code: 51 },
    cause,
  });
  expect(terminalErrorOf("declined", () => "terminal")).toMatchObject({
    name: "TerminalError",
    message: "declined",
  });
});

test("without a say every error but a TerminalError releases", () => {
  expect(terminalErrorOf(new CardError("declined"), undefined)).toBeUndefined();
  expect(terminalErrorOf(new CardError("declined"), () => "release")).toBeUndefined();
  const terminal = new TerminalError("declined");
  expect(terminalErrorOf(terminal, undefined)).toBe(terminal);
});

test("a TerminalError is terminal whatever is said of it", () => {
  const terminal = new TerminalError("declined");
  expect(terminalErrorOf(terminal, () => "release")).toBe(terminal);
});

test("a judgement that throws does not hide the error that it was asked of", () => {
  const classify = () => {
    throw new Error("no idea");
  };
  expect(terminalErrorOf(new CardError("declined"), classify)).toBeUndefined();
});
