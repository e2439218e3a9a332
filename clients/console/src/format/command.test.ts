import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { commandLine, shellWord } from "./command.ts";

it("a shell reads each word as it was", () => {
  const words = [
    "order-7",
    "",
    "a b",
    "it's",
    "$(rm x)",
    "`id`",
    '"',
    "\\",
    "*",
    "a\nb",
    "é",
    "#",
    "!x",
    "~",
    "\u0003\u001b[201~curl evil\r",
    "\t'\u0007\u009b\u007f",
    "live\u202etxt\u200b",
  ];
  const printed = execFileSync("sh", ["-c", `printf '%s\\0' ${words.map(shellWord).join(" ")}`]).toString();
  expect(printed.split("\0").slice(0, -1)).toEqual(words);
});

it("a word has no control characters for a terminal and no invisible ones for a person", () => {
  expect(shellWord("live\u202etxt")).toMatch(/^[ -~]+$/);
  expect(shellWord("\u0003a\rb\u001b[201~\u009b")).toMatch(/^[ -~]+$/);
});

it("a command has only the options that are given", () => {
  const options = { namespace: "charges", owner: "", prefix: "a b" };
  expect(commandLine("onceward records list", options)).toBe(
    "onceward records list --namespace charges --prefix 'a b'",
  );
  expect(commandLine("onceward records show", {}, ["charges", "-7"])).toBe(
    "onceward records show -- charges -7",
  );
});
