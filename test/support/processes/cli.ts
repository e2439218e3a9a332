import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import type { Host } from "../../../clients/cli/src/host.ts";
import { runProgram } from "../../../clients/cli/src/program.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { CHILD_ENVIRONMENT } from "./child-environment.ts";

const MAIN = fileURLToPath(new URL("../../../clients/cli/src/main.ts", import.meta.url));
/** A path without profiles. */
const NO_PROFILES = "/nonexistent";

/** The exit code and the output of a command. */
export interface CliResult {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that is running. */
export interface RunningCli {
  /** What it has printed so far. */
  readonly printed: { readonly stdout: string; readonly stderr: string };
  interrupt(): void;
  /** The exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>;
}

/** Returns what `toMatchObject` finds in a failed command's result: its exit code, a text on standard error, and nothing else. */
export function failed(exit: number, text: string | RegExp) {
  const stderr = typeof text === "string" ? expect.stringContaining(text) : expect.stringMatching(text);
  return { exit, stdout: "", stderr };
}

/**
 * The command line for a server, with a credential. It runs in this process, as if without a terminal. The first argument may
 * hold several words, such as `records list`.
 */
export interface Cli {
  (...args: string[]): Promise<CliResult>;
  /** Runs a command with `--json`, and returns its parsed output. @throws if it fails. */
  json(...args: string[]): Promise<unknown>;
  /** Runs a command as if at a terminal, and answers its questions with `answer`. */
  answering(answer: (question: string) => Promise<string>, ...args: string[]): Promise<CliResult>;
  /** Runs a command in a separate process, which takes half a second to load the program. */
  asProcess(...args: string[]): Promise<CliResult>;
  /** Starts a command that runs until a signal, in a separate process. */
  start(...args: string[]): RunningCli;
}

/** Returns the environment variables with a command's server and credential. */
function environment({ grpcPort }: Pick<Addresses, "grpcPort">, apiKey: string) {
  return {
    XDG_CONFIG_HOME: NO_PROFILES,
    ONCEWARD_ADDRESS: `http://127.0.0.1:${grpcPort}`,
    ONCEWARD_API_KEY: apiKey,
  };
}

export function cliFor(server: Pick<Addresses, "grpcPort">, apiKey: string): Cli {
  return cliWith(environment(server, apiKey));
}

/** Returns the command line with other environment variables, such as the folder of profiles, and standard input. */
export function cliWith(env: Readonly<Record<string, string>>, input = ""): Cli {
  const run = (...args: string[]) => runHere(args, env, { input });
  return Object.assign(run, {
    async json(...args: string[]) {
      const { exit, stdout, stderr } = await run(...args, "--json");
      if (exit !== 0) throw new Error(`onceward ${args.join(" ")} ended with ${exit}: ${stderr}`);
      return JSON.parse(stdout);
    },
    answering: (answer: (question: string) => Promise<string>, ...args: string[]) =>
      runHere(args, env, { answer }),
    asProcess: (...args: string[]) => runProcess(args, env),
    start: (...args: string[]) => startProcess(args, env),
  });
}

function wordsOf([first = "", ...others]: readonly string[]): readonly string[] {
  return [...first.split(" "), ...others];
}

interface Given {
  readonly answer?: (question: string) => Promise<string>;
  readonly input?: string;
}

/** Returns what a command sees of its process, and what it prints; at a terminal if the user can answer. */
export function hostFor(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { answer, input = "" }: Given = {},
) {
  const printed = { stdout: "", stderr: "" };
  const refuse = () => Promise.reject(new Error("a command without a terminal asks"));
  const write = (text: string) => {
    printed.stdout += text;
  };
  const host: Host = {
    ...{
      args: wordsOf(args),
      env,
      homeDir: NO_PROFILES,
      isInteractive: answer !== undefined,
      isTerminal: false,
    },
    ...{ write, writeHeading: write, ask: answer ?? refuse, askSecret: answer ?? refuse },
    warn: (text) => {
      printed.stderr += text;
    },
    openBrowser: () => {
      throw new Error("a command without a terminal opens a browser");
    },
    readInput: () => Promise.resolve(input),
  };
  return { host, printed };
}

async function runHere(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  given: Given,
): Promise<CliResult> {
  const { host, printed } = hostFor(args, env, given);
  return { exit: await runProgram(host), ...printed };
}

async function runProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<CliResult> {
  const { printed, ended } = startProcess(args, env);
  return { exit: (await ended) as number, ...printed };
}

function startProcess(args: readonly string[], env: Readonly<Record<string, string>>): RunningCli {
  const child = spawn(process.execPath, ["--conditions=@onceward/source", MAIN, ...wordsOf(args)], {
    env: { ...CHILD_ENVIRONMENT, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text) => {
      printed[name] += text;
    });
  }
  const ended = once(child, "close").then(([code, signal]) => code ?? signal);
  return { printed, ended, interrupt: () => void child.kill("SIGINT") };
}
