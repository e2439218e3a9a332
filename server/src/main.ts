#!/usr/bin/env node
import { COMMANDS } from "./commands/commands.ts";
import { runCommand } from "./commands/process.ts";

const CALLS = COMMANDS.map(({ name, synopsis = "" }) => `  ${name} ${synopsis}`.trimEnd());
const WIDTH = Math.max(...CALLS.map(({ length }) => length)) + 2;

const USAGE = `onceward-server COMMAND

${COMMANDS.map(({ summary }, index) => `${CALLS[index]?.padEnd(WIDTH)}${summary}`).join("\n")}

Configuration: environment variables, see server/settings.md.`;

const [, , name = "", ...args] = process.argv;
const command = COMMANDS.find((each) => each.name === name);
if (["help", "--help", "-h"].includes(name) || args.includes("--help") || args.includes("-h")) {
  process.stdout.write(`${USAGE}\n`);
} else if (command === undefined) {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
} else {
  await runCommand(command.run, args);
}
