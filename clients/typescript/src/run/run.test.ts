import { expect, test } from "vitest";
import { TerminalError } from "../errors/errors.ts";
import { terminalErrorOf } from "./run.ts";

class CardError extends Error {
  override readonly name = "CardError";
  readonly details = { code: 51 };
}

test("an error classified as terminal keeps its name, message and details, and is the cause", () => {
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

test("without classifyError every error but a TerminalError releases the claim", () => {
  expect(terminalErrorOf(new CardError("declined"), undefined)).toBeUndefined();
  expect(terminalErrorOf(new CardError("declined"), () => "release")).toBeUndefined();
  const terminal = new TerminalError("declined");
  expect(terminalErrorOf(terminal, undefined)).toBe(terminal);
});

test("a TerminalError is terminal for every result of classifyError", () => {
  const terminal = new TerminalError("declined");
  expect(terminalErrorOf(terminal, () => "release")).toBe(terminal);
});

test("an error of classifyError does not hide the function's error", () => {
  const classify = () => {
    throw new Error("no idea");
  };
  expect(terminalErrorOf(new CardError("declined"), classify)).toBeUndefined();
});
