import { expect, test } from "vitest";
import { runProgram } from "./program.ts";

/** Runs a command at a terminal or in a pipe; it has neither an API key nor a service. */
async function run(args: readonly string[], origin: string, isTerminal = true) {
  const printed = { out: "", err: "" };
  const opened: string[] = [];
  const noTerminal = () => Promise.reject(new Error("no terminal"));
  const write = (text: string) => {
    printed.out += text;
  };
  const exit = await runProgram({
    ...{ args: [...args, "--web"], homeDir: "/nowhere", isInteractive: isTerminal, isTerminal },
    env: { XDG_CONFIG_HOME: "/nowhere", ...(origin && { ONCEWARD_CONSOLE_ORIGIN: origin }) },
    ...{ write, writeHeading: write, ask: noTerminal, askSecret: noTerminal, readInput: noTerminal },
    warn: (text) => {
      printed.err += text;
    },
    openBrowser: (url) => void opened.push(url),
  });
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
  const shown = { exit: 0, out: `${url}\n`, err: "" };
  expect(await run(args, "https://onceward.example/console/")).toEqual({ ...shown, opened: [url] });
  expect(await run(args, "https://onceward.example", false)).toEqual({ ...shown, opened: [] });
});

test.each([
  "javascript:alert(1)",
  "file:///etc/passwd",
  "https://user:pass@onceward.example",
  "onceward.example",
])("the console's address %j is opened by no one", async (origin) => {
  const { err, ...rest } = await run(["audit", "list"], origin);
  expect(rest).toEqual({ exit: 2, out: "", opened: [] });
  expect(err).toMatch(/^onceward: The console's address must be/);
});
