#!/usr/bin/env node
import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { createInterface } from "node:readline/promises";
import { PassThrough } from "node:stream";
import { styleText } from "node:util";
import { readText } from "./bounded-text.ts";
import { runProgram } from "./program.ts";

/** The programs that open an address, without a shell; the same library for each platform would bring ten packages. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

// The reader, such as head, may close the pipe early.
process.stdout.on("error", () => process.exit());

process.exitCode = await runProgram({
  args: process.argv.slice(2),
  env: process.env,
  homeDir: homedir(),
  isInteractive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  isTerminal: process.stdout.isTTY === true,
  write: (output) => process.stdout.write(output),
  // Plain in pipes, and with NO_COLOR (https://no-color.org).
  writeHeading: (text) => process.stdout.write(styleText("bold", text, { stream: process.stdout })),
  warn: (output) => process.stderr.write(output),
  readInput: (maxBytes) => readText("Standard input", process.stdin, maxBytes),
  openBrowser(url) {
    const [program, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
    const opener = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    // There is no such program: the address is printed.
    opener.on("error", () => {});
    opener.unref();
  },
  ask: (question) => ask(question, process.stderr),
  async askSecret(question) {
    process.stderr.write(question);
    try {
      // The terminal shows what readline writes: nothing.
      return await ask("", new PassThrough().resume());
    } finally {
      process.stderr.write("\n");
    }
  },
});

async function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output, terminal: true });
  // Ctrl-D closes the input: not a yes.
  const ended = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
  try {
    return await Promise.race([terminal.question(question), ended]);
  } finally {
    terminal.close();
  }
}
