import { readdir } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { createRandom } from "../../support/random.ts";
import type { ServerProcess } from "../../support/servers/server-process.ts";
import { type Attack, attack, type Victim } from "./attack.ts";
import { startBystander } from "./bystander.ts";

/** The report of a run. A server that passes has no `findings`. */
export interface FuzzReport {
  readonly seed: number;
  readonly frames: number;
  readonly connections: number;
  /** Connections that the server ended, or on which it refused a request. */
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
  /** The least number of frames to send. */
  readonly frames: number;
  readonly onProgress?: (frames: number) => void;
}

/**
 * Concurrent connections: enough that the server is never idle, and few enough that the fuzzer is not the
 * bottleneck.
 */
const AT_ONCE = 24;
/** An idle server takes about 120 MB; more than this is a leak. */
export const MAX_RSS_MB = 600;
/** Calls of the bystander that a run has at least, however slow the machine is. */
const LEAST_BYSTANDER_CALLS = 20;
const LOOK_EVERY_MS = 100;
/** Sockets of the server itself: its ports, and a changing number of connections to Postgres. */
const SPARE_DESCRIPTORS = 30;
const SETTLING_MS = 10_000;

/**
 * Sends mutated conversations to a server in a separate process, while a bystander uses it. The seed
 * decides the bytes, and the network their order.
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
    while ((tally.frames < frames || bystander.calls < LEAST_BYSTANDER_CALLS) && server.alive) {
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

/** Whether the process has at most so many open descriptors within ten seconds. */
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
