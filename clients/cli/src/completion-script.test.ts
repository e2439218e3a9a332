import { execFileSync } from "node:child_process";
import { Command, Option } from "commander";
import { expect, test } from "vitest";
import { completionScript } from "./completion-script.ts";

const program = new Command("onceward")
  .option("--json")
  .addCommand(
    new Command("records")
      .addCommand(
        new Command("list").addOption(new Option("--state <state>").choices(["ambiguous", "completed"])),
      )
      .addCommand(new Command("show").argument("<key>")),
  );

/** What bash would offer for a line, the last word of which is being typed. */
function completions(...words: string[]): string[] {
  const script = `${completionScript(program, "bash")}
COMP_WORDS=(onceward ${words.map((word) => `'${word}'`).join(" ")})
COMP_CWORD=${words.length}
_onceward
printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim().split("\n");
}

test("commands, their options and the values of those are completed", () => {
  expect(completions("")).toEqual(["records", "--json", "--help"]);
  expect(completions("rec")).toEqual(["records"]);
  expect(completions("records", "")).toEqual(["list", "show", "--help", "--json"]);
  expect(completions("records", "list", "--s")).toEqual(["--state"]);
  expect(completions("records", "list", "--state", "a")).toEqual(["ambiguous"]);
});

test("options and arguments before the cursor are skipped", () => {
  expect(completions("--json", "records", "sh")).toEqual(["show"]);
  expect(completions("records", "list", "--state", "completed", "--st")).toEqual(["--state"]);
});

test("zsh gets the same script, with bash's completion loaded", () => {
  const script = completionScript(program, "zsh");
  expect(script).toMatch(/^#compdef onceward\nautoload -U \+X bashcompinit && bashcompinit\n/);
  expect(script.endsWith(completionScript(program, "bash"))).toBe(true);
});
