import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { hostFor } from "../../../test/support/processes/cli.ts";
import { COMMANDS as TABLE } from "./command-table.ts";
import { WORDS_COMMAND } from "./completion.ts";
import { createProgram, runProgram } from "./program.ts";

const hostWith = (args: readonly string[]) => hostFor(args, { XDG_CONFIG_HOME: "/nowhere" });

function leaves(command: Command, path: readonly string[] = []): [string, Command][] {
  if (command.commands.length === 0) return [[path.join(" "), command]];
  return command.commands.flatMap((child) => leaves(child, [...path, child.name()]));
}

const NAMES = [...TABLE.map(({ name }) => name), WORDS_COMMAND];
const COMMANDS = leaves(await createProgram(hostWith([]).host, NAMES)).map(([path]) => path);

/** The examples that a command's help shows, as a shell would hand them over. */
async function examplesOf(path: string): Promise<string[][]> {
  const { host, printed } = hostWith([...path.split(" "), "--help"]);
  expect(await runProgram(host)).toBe(0);
  const [, shown = ""] = /Examples?:\n((?: {2}onceward .*\n?)+)/.exec(printed.stdout) ?? [];
  return shown
    .trim()
    .split("\n")
    .map((line) => line.trim().replace(/ [<>] \S+$/, ""))
    .map((line) => [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ""));
}

test.each(COMMANDS)("%s has examples in its help, and all of them parse", async (path) => {
  const examples = await examplesOf(path);
  expect(examples).not.toEqual([]);
  for (const [name, ...args] of examples) {
    expect(name).toBe("onceward");
    const program = await createProgram(hostWith([]).host, NAMES);
    const ran: string[] = [];
    for (const [leaf, command] of leaves(program)) command.action(() => void ran.push(leaf));
    await program.parseAsync(args, { from: "user" });
    expect(ran).toEqual([path]);
  }
});

test.each([
  [["tenant", "show"], "onceward: No address: give --address"],
  [["tenant", "show", "--address", "http://localhost:1"], "onceward: No API key: give --api-key-stdin"],
  [
    ["tenant", "show", "--address", "http://localhost:1", "--api-key-stdin"],
    "onceward: Standard input held no API key",
  ],
  [["tenant", "show", "--profile", "none"], "onceward: There is no profile none"],
  [["tenants"], "onceward: unknown command 'tenants'\n(Did you mean tenant?)\nonceward --help lists"],
  [["foo"], "onceward: unknown command 'foo'\nonceward --help lists the commands"],
  [
    ["records", "list", "payouts"],
    "onceward: Too many arguments for 'list': payouts. Name the namespace with --namespace payouts.\n",
  ],
  [["usage", "show", "payouts"], "Name the namespace with --namespace payouts."],
  [["operator", "audit", "acme"], "Name the tenant with --tenant acme."],
  [["jobs", "show", "7", "8"], "onceward: Too many arguments for 'show': 8. --help lists what it takes."],
  [["records", "show", "charges"], "onceward: missing required argument 'key'"],
  [
    ["retention", "set", "charges", "--key", "long"],
    "onceward: option '--key <duration>' argument 'long' is invalid",
  ],
  [
    ["operator", "tenants", "limits", "a", "--burst", "2147483648"],
    "a whole number such as 500, at most 2147483647.",
  ],
  [["tenant", "set", "--max-result-bytes", "5GiB"], "64KiB or 5GiB, at most 2147483647."],
  [["profile", "set", "a", "--address", "nowhere"], "onceward: Give --address and a URL"],
])("%j is wrong usage, and says what is missing", async (args, message) => {
  const { host, printed } = hostWith(args);
  expect(await runProgram(host)).toBe(2);
  expect(printed.stderr).toContain(message);
  expect(printed.stdout).toBe("");
});

/** Prints the address of each module that a program loads. */
const LIST_MODULES = `data:text/javascript,
  import { registerHooks } from "node:module";
  registerHooks({ load: (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context)) });`;
const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

/** Prints the help of each command that it is given, in one process. */
const HELP_OF_ALL = `import { runProgram } from ${JSON.stringify(new URL("program.ts", import.meta.url))};
  const host = { env: {}, homeDir: "/nowhere", write: () => {}, writeHeading: () => {} };
  for (const name of process.argv.slice(1)) process.exitCode ||= await runProgram({ ...host, args: [name, "--help"] });`;

async function packagesOf(...args: string[]): Promise<ReadonlySet<string>> {
  const node = ["--conditions=@onceward/source", "--import", LIST_MODULES, ...args];
  const { stderr } = await promisify(execFile)(process.execPath, node);
  expect(stderr).toContain("/program.ts");
  const inPackages = /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/clients\/(typescript)\//g;
  return new Set([...stderr.matchAll(inPackages)].map(([, name, own]) => name ?? own ?? ""));
}

test.each([
  [["--help"]],
  [["--version"]],
  [["version"]],
  [["completion", "bash"]],
  [[WORDS_COMMAND, "--", "rec"]],
])("%j loads no client, no gRPC and no Protobuf", async (args) => {
  expect(await packagesOf(MAIN, ...args)).toEqual(new Set(["commander"]));
});

test("the help of a command loads no transport", async () => {
  const packages = await packagesOf("--input-type=module", "--eval", HELP_OF_ALL, "--", ...NAMES);
  for (const transport of ["@connectrpc/connect", "@connectrpc/connect-node", "@grpc/grpc-js"])
    expect(packages).not.toContain(transport);
});
