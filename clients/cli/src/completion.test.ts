import { Argument, Command, Option } from "commander";
import { expect, test } from "vitest";
import { completions, type NameSources } from "./completion.ts";
import type { GlobalOptions } from "./credentials.ts";

const program = new Command("onceward")
  .option("--json")
  .option("--profile <name>")
  .addCommand(
    new Command("records")
      .addCommand(
        new Command("list")
          .addOption(new Option("--state <state>").choices(["ambiguous", "completed"]))
          .option("-n, --namespace <name>"),
      )
      .addCommand(new Command("show").argument("<namespace>").argument("<key>")),
  )
  .addCommand(new Command("use").argument("<profile>"))
  .addCommand(new Command("completion").addArgument(new Argument("<shell>").choices(["bash", "zsh"])))
  .addCommand(new Command("completion-words"), { hidden: true });

/** Returns the words that are offered while the last word is being typed, and the options that the names were asked with. */
async function offered(...words: string[]) {
  const asked: GlobalOptions[] = [];
  const sources: NameSources = {
    namespaces: async (globals) => {
      asked.push(globals);
      return ["charges", "payouts"];
    },
    profiles: async () => ["production", "staging"],
  };
  return { words: await completions(program, words, sources), asked };
}

test.each([
  [[""], ["records", "use", "completion"]],
  [["rec"], ["records"]],
  [["comp"], ["completion"]],
  [["-"], ["--json", "--profile", "--help"]],
  [
    ["records", ""],
    ["list", "show"],
  ],
  [
    ["records", "list", ""],
    ["--state", "--namespace", "--json", "--profile", "--help"],
  ],
  [["records", "list", "--s"], ["--state"]],
  [
    ["records", "list", "--state", ""],
    ["ambiguous", "completed"],
  ],
  [["records", "list", "--state", "x"], []],
  [["records", "list", "--state", "completed", "--na"], ["--namespace"]],
  [["records", "list", "--namespace", "ch"], ["charges"]],
  [
    ["records", "show", ""],
    ["charges", "payouts"],
  ],
  [
    ["records", "show", "charges", "--"],
    ["--json", "--profile", "--help"],
  ],
  [["records", "show", "charges", "order"], []],
  [["--json", "records", "sh"], ["show"]],
  [["--profile", "records", "records", "sh"], ["show"]],
  [["use", "s"], ["staging"]],
  [
    ["--profile", ""],
    ["production", "staging"],
  ],
  [
    ["completion", ""],
    ["bash", "zsh"],
  ],
  // bash makes three words of an option with "="; zsh and fish leave one.
  [["records", "list", "--state", "=", "a"], ["ambiguous"]],
  [["records", "list", "--state=a"], ["--state=ambiguous"]],
])("at the end of %j it offers %j", async (words, expected) => {
  expect((await offered(...words)).words).toEqual(expected);
});

test("namespaces are asked for with the profile of the line, and only where one is valid", async () => {
  const { asked } = await offered("--profile", "staging", "records", "show", "");
  expect(asked).toEqual([{ profile: "staging" }]);
  expect((await offered("records", "list", "--st")).asked).toEqual([]);
});
