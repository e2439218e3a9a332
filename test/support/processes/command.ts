import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { readPidFile } from "../../../server/dev/embedded/pid-file.ts";
import { shutDown } from "../../../server/dev/embedded/postmaster.ts";
import { copyEmptyCluster } from "../database/empty-cluster.ts";
import { CHILD_ENVIRONMENT } from "./child-environment.ts";
import { makeDataDir } from "./data-dir.ts";

const PACKAGE = new URL("../../../package.json", import.meta.url);
const MAIN = fileURLToPath(new URL("../../../server/src/main.ts", import.meta.url));
const DEV_MAIN = fileURLToPath(new URL("../../../server/dev/main.ts", import.meta.url));
/** Maximum time until a command prints an expected text, on a busy machine too. */
const PRINT_TIMEOUT_MS = 60_000;

/** Settings that make a server listen on free ports. */
export const FREE_PORTS = { ONCEWARD_GRPC_PORT: "0", ONCEWARD_HTTP_PORT: "0", ONCEWARD_MANAGEMENT_PORT: "0" };

/** The working directory of a command, and a directory for its temporary files. */
export interface Workplace {
  readonly dir: string;
  /** The `TMPDIR` of commands, which contains their sockets. */
  readonly temporaryDir: string;
}

/** The end of a command: its exit code, or the signal that ended it, and all its output. */
export interface Ended {
  readonly exit: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `onceward-server …`. It has its own process group, as in a terminal. */
export interface Command {
  readonly pid: number;
  /** Resolves with the match once standard output matches the pattern. */
  untilPrinted(pattern: RegExp): Promise<RegExpExecArray>;
  /** Closes the reader of standard output, as `| head -1` does. */
  closeOutput(): Promise<void>;
  /** Sends a signal to the process group, as a terminal does. */
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

/** A workplace of a test's own, which any user can enter. */
export async function createWorkplace(): Promise<Workplace> {
  const dir = await makeDataDir("ow-command-");
  onTestFinished(async () => {
    await stopPostgres(dir);
    await rm(dir, { recursive: true, force: true });
  });
  const temporaryDir = join(dir, "tmp");
  await mkdir(temporaryDir);
  return { dir, temporaryDir };
}

/** As `createWorkplace`, with the empty Postgres that the first `npm start` in it would create. */
export async function createWorkplaceWithCluster(): Promise<Workplace> {
  const workplace = await createWorkplace();
  await copyEmptyCluster(join(workplace.dir, ".onceward", "postgres"));
  return workplace;
}

/** Stops a Postgres that still runs after its command was killed or its test failed. */
async function stopPostgres(dir: string): Promise<void> {
  const left = await readPidFile(join(dir, ".onceward", "postgres"));
  if (left !== undefined) await shutDown(left);
}

/** Starts a command; it is killed when the test ends. Its environment is that of all tests' processes, and `env`. */
export function startCommand(
  args: readonly string[],
  { dir, temporaryDir }: Workplace,
  env: Readonly<Record<string, string>> = {},
): Command {
  return startProgram(process.execPath, [MAIN, ...args], { dir, temporaryDir }, env);
}

/** Runs a command with this standard input, and returns its end. It is killed when the test ends. */
export async function runWithInput(
  input: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...CHILD_ENVIRONMENT, ...env } });
  onTestFinished(() => void child.kill("SIGKILL"));
  // A command that refuses its input closes it.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return await collectOutput(child).ended;
}

/** Starts the program that `npm start` runs, by `startCommand`. */
export function startDevServer(
  workplace: Workplace,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Command {
  return startProgram(process.execPath, [DEV_MAIN, ...args], workplace, env);
}

/** Starts `npm start` in a workplace, with the script of the repository's package.json. */
export async function startNpm(
  workplace: Workplace,
  env: Readonly<Record<string, string>> = {},
): Promise<Command> {
  const { scripts } = JSON.parse(await readFile(PACKAGE, "utf8"));
  const start = String(scripts.start).replace("server/dev/main.ts", DEV_MAIN);
  await writeFile(join(workplace.dir, "package.json"), JSON.stringify({ private: true, scripts: { start } }));
  // In the repository, npm also finds the packaged Node first.
  const PATH = `${dirname(process.execPath)}${delimiter}${CHILD_ENVIRONMENT.PATH}`;
  return startProgram("npm", ["start"], workplace, { ...env, PATH });
}

function collectOutput(child: ChildProcessByStdio<Writable | null, Readable, Readable>) {
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text) => {
      printed[name] += text;
    });
  }
  const ended: Promise<Ended> = once(child, "close").then(([code, signal]) => ({
    exit: code ?? signal,
    ...printed,
  }));
  return { printed, ended };
}

function startProgram(
  program: string,
  args: readonly string[],
  { dir, temporaryDir }: Workplace,
  env: Readonly<Record<string, string>>,
): Command {
  const child = spawn(program, args, {
    cwd: dir,
    detached: true,
    env: { ...CHILD_ENVIRONMENT, TMPDIR: temporaryDir, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { printed, ended } = collectOutput(child);
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  onTestFinished(async () => {
    // The whole group is killed: npm's child outlives npm.
    if (isRunning()) process.kill(-(child.pid ?? Number.NaN), "SIGKILL");
    await ended;
  });
  return {
    pid: child.pid ?? Number.NaN,
    ended,
    async closeOutput() {
      child.stdout.destroy();
      await once(child.stdout, "close");
    },
    signal: (name) => process.kill(-(child.pid ?? Number.NaN), name),
    async untilPrinted(pattern) {
      const giveUp = AbortSignal.timeout(PRINT_TIMEOUT_MS);
      for (;;) {
        const found = pattern.exec(printed.stdout);
        if (found !== null) return found;
        if (!isRunning()) {
          const { exit, stdout, stderr } = await ended;
          throw new Error(`the command ended with ${exit} before it printed ${pattern}:\n${stdout}${stderr}`);
        }
        await Promise.race([once(child.stdout, "data", { signal: giveUp }), ended]);
      }
    },
  };
}

/** Runs a command to its end. */
export function runCommand(
  args: readonly string[],
  workplace: Workplace,
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return startCommand(args, workplace, env).ended;
}
