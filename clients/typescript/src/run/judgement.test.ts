import { expect, test } from "vitest";
import { OncewardError, TerminalError } from "../errors/errors.ts";
import { type Judgement, judge } from "./judgement.ts";
import { NoEffectError, OutcomeUnknownError } from "./outcome-unknown.ts";
import type { RunOptions } from "./run-options.ts";

class CardError extends Error {
  override readonly name = "CardError";
  readonly details = { code: 51 };
}

const running = { signal: new AbortController().signal };
const classifyError = () => "terminal" as const;

test("an error classified as terminal keeps its name, message and details, and is the cause", () => {
  const cause = new CardError("declined");
  expect(judge(cause, running, { classifyError })).toMatchObject({
    name: "CardError",
    message: "declined",
    details: { code: 51 },
    cause,
  });
  expect(judge("declined", running, { classifyError })).toMatchObject({
    name: "TerminalError",
    message: "declined",
  });
});

const terminal = new TerminalError("declined");
const timeout = new DOMException("5 s have passed", "TimeoutError");
const noEffect = new NoEffectError("not sent");
const unknown = new OutcomeUnknownError("broke off");
const named = (name: string) => Object.assign(new Error("5 s have passed"), { name });
const coded = (facts: object) => Object.assign(new Error("5 s have passed"), facts);
const noAnswer = new OncewardError("NO_ANSWER", "no answer", { code: 4, cause: timeout });
class APIConnectionTimeoutError extends Error {}
const money = { onError: "unknown" } as const;
const brokenClassifier = () => {
  throw new Error("no idea");
};

test.for<[string, unknown, typeof running, Pick<RunOptions, "classifyError" | "onError">, Judgement]>([
  [
    "an error of classifyError counts as release",
    new CardError("x"),
    running,
    { classifyError: brokenClassifier },
    "release",
  ],
  [
    "a TerminalError is terminal regardless of what classifyError says",
    terminal,
    running,
    { classifyError: () => "release" },
    terminal,
  ],
  ["a time limit of an HTTP client is unknown", named("HeadersTimeoutError"), running, {}, "unknown"],
  ["a connection that was not made in time releases", named("ConnectTimeoutError"), running, {}, "release"],
  ["a time limit of axios is unknown", coded({ code: "ECONNABORTED" }), running, {}, "unknown"],
  [
    "a connection that Node did not make in time releases",
    coded({ code: "ETIMEDOUT", syscall: "connect" }),
    running,
    {},
    "release",
  ],
  ["a read that timed out is unknown", coded({ code: "ETIMEDOUT", syscall: "read" }), running, {}, "unknown"],
  ["a deadline of grpc-js is unknown", coded({ code: 4, details: "", metadata: {} }), running, {}, "unknown"],
  ["a code of another library releases", coded({ code: 4 }), running, {}, "release"],
  ["a nested run without an answer releases", noAnswer, running, {}, "release"],
  ["a class without a name of its own is unknown", new APIConnectionTimeoutError(), running, {}, "unknown"],
  ["a timeout of a made connection is unknown", named("ConnectionTimeoutError"), running, {}, "unknown"],
  [
    "a NoEffectError caused by a timeout releases",
    new NoEffectError("x", { cause: timeout }),
    running,
    money,
    "release",
  ],
  [
    "a NoEffectError caused by an unknown outcome releases",
    new NoEffectError("x", { cause: unknown }),
    running,
    {},
    "release",
  ],
  [
    "an unknown outcome caused by a NoEffectError is unknown",
    new OutcomeUnknownError("x", { cause: noEffect }),
    running,
    {},
    "unknown",
  ],
])("%s", ([, error, claim, options, judgement]) => {
  expect(judge(error, claim, options)).toBe(judgement);
});

test("causes that form a circle end", () => {
  const circle = new Error("first");
  circle.cause = new Error("second", { cause: circle });
  expect(judge(circle, running, {})).toBe("release");
});
