#!/usr/bin/env node
import { spawn } from "node:child_process";
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { PassThrough } from "node:stream";
import { styleText } from "node:util";

/** The programs that open an address, without a shell; the same library for each platform would bring ten packages. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

// Node compiles the program only once: a shell runs it for each completion. In the user's folder, because code of a shared one could
// be another user's. Without a folder that can be written, nothing is kept.
module.enableCompileCache?.(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "onceward"));
const [{ readText }, { runProgram }] = await Promise.all([
  import("./bounded-text.ts"),
  import("./program.ts"),
]);

// The reader, such as head, may close the pipe early.
process.stdout.on("error", () => process.exit());

process.exitCode = await runProgram({
  args: process.argv.slice(2),
  env: process.env,
  homeDir: homedir(),
  isInteractive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  isTerminal: process.stdout.isTTY === true,
  width: process.stdout.columns,
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
