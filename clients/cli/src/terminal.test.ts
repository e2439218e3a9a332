import { Code } from "@connectrpc/connect";
import { OncewardError } from "@onceward/client";
import { expect, test } from "vitest";
import { hostFor } from "../../../test/support/processes/cli.ts";
import { describeFailure, failureJson, ServiceFailure } from "./failure.ts";
import { printing } from "./host.ts";
import { Output } from "./output.ts";
import { runProgram } from "./program.ts";
import { hasControls } from "./terminal.ts";

/** Clears the screen by C0 and by C1, writes backwards, breaks the line by Unicode, and deletes. */
const HOSTILE = "\u001b[2J\u009b2J\u202e\u2067\u2028\u007f\u0085";

/** Returns a host at a terminal, and what reaches that. */
function newTerminal(...args: string[]) {
  const asked: string[] = [];
  const answer = async (question: string) => {
    asked.push(question);
    return "";
  };
  const { host, printed } = hostFor(args, {}, { answer });
  return { host, seen: () => printed.stdout + printed.stderr + asked.join("") };
}

test("no text reaches the terminal with its control characters, apart from line breaks and tabs", async () => {
  const { host, seen } = newTerminal();
  const safe = printing(host);
  safe.write(`a\tb${HOSTILE}\n`);
  safe.warn(HOSTILE);
  await safe.ask(HOSTILE);
  await safe.askSecret(HOSTILE);
  const text = seen();
  expect(text).toMatch(/^a\tb\uFFFD\[2J.*\n/);
  expect(hasControls(text.replaceAll(/[\n\t]/g, ""))).toBe(false);
});

test("the program writes the words of its arguments without control characters", async () => {
  const { host, seen } = newTerminal(`x${HOSTILE}`);
  expect(await runProgram(host)).toBe(2);
  expect(seen()).toContain("unknown command");
  expect(hasControls(seen().replaceAll("\n", ""))).toBe(false);
});

test("JSON has no control character, and its reader gets the text unchanged", () => {
  for (const print of [
    (output: Output) => output.value({ owner: HOSTILE }, () => ""),
    (output: Output) => output.line({ owner: HOSTILE }, () => ""),
  ]) {
    const { host, seen } = newTerminal();
    print(new Output(printing(host), true));
    const text = seen();
    expect(hasControls(text.replaceAll("\n", ""))).toBe(false);
    expect(JSON.parse(text)).toEqual({ owner: HOSTILE });
  }
});

test("a service's error is one line without control characters, and unchanged with --json", () => {
  const cause = new OncewardError("INTERNAL", `first\n${HOSTILE}`, { code: Code.Internal });
  const failure = new ServiceFailure(cause, "request-1");
  expect(hasControls(describeFailure(failure) ?? "")).toBe(false);
  const json = failureJson(failure) ?? "";
  expect(hasControls(json)).toBe(false);
  expect(JSON.parse(json)).toMatchObject({ message: `first\n${HOSTILE}` });
});
