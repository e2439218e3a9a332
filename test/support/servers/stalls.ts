import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SERVER_PROGRAM, type ServerProcess } from "./server-process.ts";

const PROBE = fileURLToPath(new URL("stall-probe.ts", import.meta.url));

/** The longest time that an event loop was blocked, in milliseconds. */
export interface LongestStall {
  /** In wall-clock time. */
  readonly longestStallMs: number;
  /** In processor time of the thread, which is hardly longer on a busy machine than on an idle one. */
  readonly longestWorkMs: number;
}

/**
 * Returns Node's arguments with the probe, which makes a program report how long its event loop is blocked.
 */
export function withStallProbe(program: readonly string[] = SERVER_PROGRAM): readonly string[] {
  return ["--import", PROBE, ...program];
}

const LOOK_EVERY_MS = 2;
const REPORT_TIMEOUT_MS = 60_000;

/**
 * Returns how long the event loop of a server, which runs `withStallProbe`, was blocked since the last call.
 */
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
