import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { type Command, FREE_PORTS, startDevServer, type Workplace } from "./command.ts";
import { CURL_FALLBACK } from "./follow-readme.ts";

const run = promisify(execFile);
const CALL_TIMEOUT_MS = 20_000;

/** The program of `npm start`, ready for calls. */
export interface Dev extends Command {
  /** Claims the key "order-1" of the demo tenant, and returns the parsed reply. */
  call(): Promise<Record<string, unknown>>;
  /** Pastes the banner's example, unchanged, into bash, and returns the parsed replies. */
  followExample(): Promise<readonly Record<string, unknown>[]>;
  readonly callerKey: string;
  /** The URL of the gRPC port, as in the client's `address`. */
  readonly grpcUrl: string;
  /** The URL of the HTTP port, with a slash at its end. */
  readonly httpUrl: string;
  readonly managementUrl: string;
}

/**
 * Starts the program of `npm start` in a workplace, on free ports unless `env` sets others, and waits for its
 * banner.
 */
export async function startDev(
  workplace: Workplace,
  env: Readonly<Record<string, string>> = {},
): Promise<Dev> {
  const command = startDevServer(workplace, { ...FREE_PORTS, ...env });
  const [, shown = ""] = await command.untilPrinted(/^(order=[\s\S]*?)\n\n[\s\S]*Ctrl-C stops it\.$/m);
  const [, httpUrl = ""] = await command.untilPrinted(/JSON +(http:\S+)/);
  const [, callerKey = ""] = await command.untilPrinted(/caller's key +(\S+)/);
  const [, grpcAddress = ""] = await command.untilPrinted(/gRPC \(.*\) +(\S+)/);
  const [, managementUrl = ""] = await command.untilPrinted(/metrics +(http:\S+)/);
  return {
    ...command,
    callerKey,
    grpcUrl: `http://${grpcAddress}`,
    httpUrl: `${httpUrl}/`,
    managementUrl,
    async call() {
      const response = await fetch(`${httpUrl}/onceward.v1.IdempotencyService/Claim`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${callerKey}` },
        body: JSON.stringify({ namespace: "charges", key: "order-1" }),
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      return (await response.json()) as Record<string, unknown>;
    },
    async followExample() {
      const options = { timeout: CALL_TIMEOUT_MS };
      const { stdout } = await run("bash", ["-c", `${CURL_FALLBACK}\n${shown}`], options);
      return stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    },
  };
}

/** Sends the signal of Ctrl-C, and expects exit code 0. */
export async function pressCtrlC(dev: Command): Promise<void> {
  dev.signal("SIGINT");
  expect(await dev.ended).toMatchObject({ exit: 0, stderr: "" });
}

/** Returns the processes with the workplace on their command line, where Postgres has its data directory. */
export async function processesOf({ dir }: Workplace): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  // A process that has ended has no command line.
  const commandLines = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")),
  );
  return commandLines.map((line) => line.replaceAll("\0", " ")).filter((line) => line.includes(dir));
}

/** Fails if a process still runs, or a socket's directory or an incomplete cluster is left. */
export async function expectNothingLeft(workplace: Workplace): Promise<void> {
  expect(await processesOf(workplace)).toEqual([]);
  const sockets = await readdir(workplace.temporaryDir);
  expect(sockets.filter((name) => name.startsWith("onceward"))).toEqual([]);
  const kept = await readdir(join(workplace.dir, ".onceward")).catch(() => []);
  expect(kept.filter((name) => name.endsWith(".init"))).toEqual([]);
}
