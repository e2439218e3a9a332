import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SERVER_PROGRAM, type ServerProcess } from "./server-process.ts";

const PROBE = fileURLToPath(new URL("stall-probe.ts", import.meta.url));

/** How long an event loop was held at the longest, in milliseconds. */
export interface LongestStall {
  /** By the clock. */
  readonly longestStallMs: number;
  /** By the thread's work: the same on an idle machine, and not much more on a busy one. */
  readonly longestWorkMs: number;
}

/** Has a program of Node's tell how long its event loop is held. */
export function withStallProbe(program: readonly string[] = SERVER_PROGRAM): readonly string[] {
  return ["--import", PROBE, ...program];
}

const LOOK_EVERY_MS = 2;
const REPORT_TIMEOUT_MS = 60_000;

/** How long the event loop of a server, which runs `withStallProbe`, was held since the last call. */
export async function longestStall(server: ServerProcess): Promise<LongestStall> {
  const before = reports(server).length;
  server.signal("SIGUSR2");
  const giveUpAtMs = performance.now() + REPORT_TIMEOUT_MS;
  while (server.alive && performance.now() < giveUpAtMs) {
    const report = reports(server)[before];
    if (report !== undefined) return JSON.parse(report);
    await pause(LOOK_EVERY_MS);
  }
  throw new Error(server.alive ? "the server does not report its longest stall" : "the server has ended");
}

function reports({ output }: ServerProcess): readonly string[] {
  return output.filter((line) => line.includes('"longestStallMs"'));
}
