import { monitorEventLoopDelay } from "node:perf_hooks";

/**
 * Loaded into a server's process: at each SIGUSR2 it prints, as a line of the log, how long the event loop was held since the
 * last SIGUSR2 at the longest, in milliseconds: by the clock, and by the CPU time of the thread. On a machine whose
 * cores are all busy, the clock also counts the turns of other processes.
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
