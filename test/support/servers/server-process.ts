import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { UNIX_SOCKETS } from "../network/raw-socket.ts";
import { CHILD_ENVIRONMENT } from "../processes/child-environment.ts";
import { socketSetting, TEST_PEPPER } from "./server.ts";

/** A real server in a separate process, so that a test can observe its end. */
export interface ServerProcess extends Addresses {
  readonly pid: number;
  /** All lines of standard output and standard error. */
  readonly output: readonly string[];
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
  /** Whether the process still runs. */
  readonly alive: boolean;
  /** Returns the resident memory in megabytes. */
  rssMb(): Promise<number>;
  /** Kills the process unless it has ended. */
  end(): Promise<void>;
}

const MAIN = fileURLToPath(new URL("../../../server/src/main.ts", import.meta.url));

/** Node's arguments to run the server. */
export const SERVER_PROGRAM: readonly string[] = [MAIN, "serve"];

/**
 * Starts `onceward-server serve`, or another program that logs "serving" as it does, on a database and free
 * ports. `env` overrides its configuration.
 */
export async function startServerProcess(
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {},
  program: readonly string[] = SERVER_PROGRAM,
): Promise<ServerProcess> {
  const child = spawn(process.execPath, program, {
    env: {
      ...CHILD_ENVIRONMENT,
      DATABASE_URL: databaseUrl,
      ONCEWARD_API_KEY_PEPPER: TEST_PEPPER,
      ONCEWARD_GRPC_PORT: "0",
      ONCEWARD_HTTP_PORT: "0",
      ONCEWARD_MANAGEMENT_PORT: "0",
      ONCEWARD_DRAIN_DELAY: "0s",
      ONCEWARD_SWEEP_INTERVAL: "1h",
      // An earlier version may not know it.
      ...(program.includes(MAIN) && socketSetting()),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output: string[] = [];
  const exited = once(child, "exit").then(([code, signal]) => code ?? signal);
  const addresses = await untilServing(child, output);
  if (addresses.socket !== undefined) UNIX_SOCKETS.set(addresses.grpcPort, addresses.socket);
  return {
    ...addresses,
    pid: child.pid ?? 0,
    output,
    exited,
    signal: (name) => child.kill(name),
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    async rssMb() {
      const [, kilobytes] =
        /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${child.pid}/status`, "utf8")) ?? [];
      return Number(kilobytes) / 1024;
    },
    async end() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Collects the output of the process, and resolves once it logs its addresses. */
function untilServing(child: ChildProcess, output: string[]): Promise<Addresses> {
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        output.push(line);
        if (line.includes('"serving"')) resolve(JSON.parse(line));
      });
    }
    child.once("exit", () => reject(new Error(`the server ended before it served:\n${output.join("\n")}`)));
  });
}
