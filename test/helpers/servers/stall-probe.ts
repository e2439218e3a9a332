import { monitorEventLoopDelay } from "node:perf_hooks";

/**
 * Loaded into a server's process. At each SIGUSR2, logs the longest time since the last SIGUSR2 that the
 * event loop was blocked, in milliseconds: in wall-clock time, and in processor time of the thread. On a busy
 * machine, wall-clock time includes the time of other processes.
 */
const RESOLUTION_MS = 1;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delays.enable();

let workedMs = threadMs();
let longestWorkMs = 0;
setInterval(() => {
  const nowMs = threadMs();
  longestWorkMs = Math.max(longestWorkMs, nowMs - workedMs);
  workedMs = nowMs;
}, RESOLUTION_MS).unref();

process.on("SIGUSR2", () => {
  const longestStallMs = Math.max(0, delays.max / 1e6 - RESOLUTION_MS);
  process.stdout.write(`${JSON.stringify({ level: 30, longestStallMs, longestWorkMs })}\n`);
  delays.reset();
  longestWorkMs = 0;
});

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
