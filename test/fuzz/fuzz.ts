import { readdir } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { createRandom } from "../demo/random.ts";
import type { ServerProcess } from "../helpers/servers/server-process.ts";
import { type Attack, attack, type Victim } from "./attack.ts";
import { startBystander } from "./bystander.ts";

/** What a run of the fuzzer found; a server that holds has no `findings`. */
export interface FuzzReport {
  readonly seed: number;
  readonly frames: number;
  readonly connections: number;
  /** Connections that the server ended, or on which it refused something. */
  readonly refusals: number;
  readonly framesByKind: Readonly<Record<string, number>>;
  readonly framesByMutation: Readonly<Record<string, number>>;
  readonly rssPeakMb: number;
  readonly bystanderCalls: number;
  readonly bystanderLongestMs: number;
  readonly findings: readonly string[];
}

export interface FuzzVictim extends Victim {
  readonly server: ServerProcess;
}

export interface FuzzOptions {
  readonly seed: number;
  /** At least so many are sent. */
  readonly frames: number;
  readonly onProgress?: (frames: number) => void;
}

/** Connections at once: enough that the server is never idle, few enough that the fuzzer itself isn't what is slow. */
const AT_ONCE = 24;
/** An idle server takes about 120 MB; beyond this, something piles up. */
export const MAX_RSS_MB = 600;
const LOOK_EVERY_MS = 100;
/** Sockets that a server has for itself: its ports, and its pool's connections, which come and go. */
const SPARE_DESCRIPTORS = 30;
const SETTLING_MS = 10_000;

/**
 * Sends mutated conversations to a server in a process of its own, while somebody else uses it. The seed decides what is
 * sent; which of it meets what on the server is up to the network.
 */
export async function fuzz(victim: FuzzVictim, options: FuzzOptions): Promise<FuzzReport> {
  const { seed, frames, onProgress } = options;
  const { server } = victim;
  const random = createRandom(seed);
  const linesBefore = server.output.length;
  const descriptorsBefore = await countDescriptors(server);
  const memory = watchMemory(server);
  const bystander = startBystander(victim);
  const tally = createTally();

  async function attackOnAndOn(): Promise<void> {
    while (tally.frames < frames && server.alive) {
      tally.add(await attack(createRandom(random.below(2 ** 32)), victim));
      onProgress?.(tally.frames);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, attackOnAndOn));
  await bystander.stop();

  const findings = [...tally.wrong, ...bystander.failures];
  if (!server.alive) findings.push(`the process ended: ${await server.exited}`);
  else if (!(await settles(server, descriptorsBefore + SPARE_DESCRIPTORS)))
    findings.push("sockets were left open");
  const rssPeakMb = await memory.stop();
  if (rssPeakMb > MAX_RSS_MB) findings.push(`${rssPeakMb} MB of memory`);
  findings.push(...server.output.slice(linesBefore).filter((line) => !line.startsWith('{"level":30,')));
  const { connections, refusals, framesByKind, framesByMutation } = tally;
  return {
    seed,
    frames: tally.frames,
    connections,
    refusals,
    framesByKind,
    framesByMutation,
    rssPeakMb,
    bystanderCalls: bystander.calls,
    bystanderLongestMs: Math.round(bystander.longestMs),
    findings,
  };
}

function createTally() {
  const framesByKind: Record<string, number> = {};
  const framesByMutation: Record<string, number> = {};
  const wrong: string[] = [];
  return {
    frames: 0,
    connections: 0,
    refusals: 0,
    framesByKind,
    framesByMutation,
    wrong,
    add(done: Attack) {
      this.frames += done.frames;
      this.connections++;
      if (done.isRefused) this.refusals++;
      framesByKind[done.kind] = (framesByKind[done.kind] ?? 0) + done.frames;
      framesByMutation[done.mutation] = (framesByMutation[done.mutation] ?? 0) + done.frames;
      if (done.wrong !== undefined) wrong.push(`${done.kind}, ${done.mutation}: ${done.wrong}`);
    },
  };
}

/** The most memory that the process has at any look. */
function watchMemory(server: ServerProcess) {
  let peakMb = 0;
  const look = async () => {
    if (server.alive) peakMb = Math.max(peakMb, await server.rssMb().catch(() => 0));
  };
  const timer = setInterval(() => void look(), LOOK_EVERY_MS);
  return {
    async stop(): Promise<number> {
      clearInterval(timer);
      await look();
      return Math.round(peakMb);
    },
  };
}

/** Whether the process has, within ten seconds, no more open than that. */
async function settles(server: ServerProcess, descriptors: number): Promise<boolean> {
  const untilMs = performance.now() + SETTLING_MS;
  while (performance.now() < untilMs) {
    if ((await countDescriptors(server)) <= descriptors) return true;
    await pause(LOOK_EVERY_MS);
  }
  return false;
}

async function countDescriptors({ pid }: ServerProcess): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}
