import { expect, test } from "vitest";
import { hostFor } from "../../../test/support/processes/cli.ts";
import { runProgram } from "./program.ts";

/** Runs a command at a terminal or in a pipe; it has neither an API key nor a service. */
async function run(args: readonly string[], origin: string, isTerminal = true) {
  const opened: string[] = [];
  const env = { XDG_CONFIG_HOME: "/nowhere", ...(origin && { ONCEWARD_CONSOLE_ORIGIN: origin }) };
  const { host, printed } = hostFor([...args, "--web"], env);
  const openBrowser = (url: string) => void opened.push(url);
  const exit = await runProgram({ ...host, isInteractive: isTerminal, isTerminal, openBrowser });
  return { exit, ...printed, opened };
}

test.each([
  [["namespaces", "show", "charges"], "/namespaces/charges"],
  [["advice"], "/namespaces"],
  [
    ["records", "show", "charges", `$(touch x); "a/b" é`],
    "/records/charges/%24(touch%20x)%3B%20%22a%2Fb%22%20%C3%A9",
  ],
  [["records", "history", "charges", ".."], "/records/charges/-?key=.."],
  [
    ["records", "list", "-n", "charges", "--state", "completed", "--prefix", "a&b"],
    "/records?namespace=charges&prefix=a%26b&state=completed",
  ],
  [["records", "list", "--state", "ambiguous", "--owner", "worker 3"], "/ambiguous?owner=worker+3"],
  [["jobs", "show", "12"], "/jobs/12"],
  [["operator", "usage", "acme"], "/tenants/acme"],
])("%j --web opens the console's screen, and prints its address", async (args, path) => {
  const url = `https://onceward.example/console${path}`;
  const shown = { exit: 0, stdout: `${url}\n`, stderr: "" };
  expect(await run(args, "https://onceward.example/console/")).toEqual({ ...shown, opened: [url] });
  expect(await run(args, "https://onceward.example", false)).toEqual({ ...shown, opened: [] });
});

test.each([
  "javascript:alert(1)",
  "file:///etc/passwd",
  "https://user:pass@onceward.example",
  "onceward.example",
])("the console's address %j is opened by no one", async (origin) => {
  const { stderr, ...rest } = await run(["audit", "list"], origin);
  expect(rest).toEqual({ exit: 2, stdout: "", opened: [] });
  expect(stderr).toMatch(/^onceward: The console's address must be/);
});
