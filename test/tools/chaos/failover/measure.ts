import { setTimeout as pause } from "node:timers/promises";
import type { Standing } from "../../../helpers/database/standby.ts";
import { socketOf } from "../../../helpers/network/sockets.ts";
import { startTcpProxy } from "../../../helpers/network/tcp-proxy.ts";
import { createRandom } from "../../../helpers/random.ts";
import { nameOf, nowMs } from "../../history/operation.ts";
import { readAll } from "../final.ts";
import { untilMs } from "../injector.ts";
import type { Rig } from "../rig.ts";
import { connectTo, NAMESPACE, startCallers, unlessRefused } from "./callers.ts";
import { claimAgain } from "./claim-again.ts";
import { lossesOf, lostForMs } from "./losses.ts";

/** How the primary acknowledges, and how far the standby is from it. */
export interface Setting {
  readonly standing: Standing;
  /** `slow` delays what the primary sends to the standby, and its answers, by 150 ms each. */
  readonly link: "local" | "slow";
}

/** The figures of one failover. */
export interface Failover {
  readonly setting: Setting;
  readonly seed: number;
  /** Counted until the standby had taken over. */
  readonly acknowledged: { readonly claims: number; readonly completes: number };
  readonly lost: { readonly claims: number; readonly completes: number };
  /** How long before the kill the first lost acknowledgement was given. */
  readonly lostForMs: number;
  /** Lost claims that, claimed again, got a token not above the lost one. */
  readonly tokensAgain: number;
  /** From the kill to the first claim that the standby grants. */
  readonly downMs: number;
}

/**
 * Load before the kill: enough to reach the callers' pace, plus a random part, so that kills come at
 * different moments.
 */
const LOAD_MS = 2000;
const MORE_LOAD_MS = 1000;
const BACK_TIMEOUT_MS = 20_000;
const TRY_TIMEOUT_MS = 1000;
const REST_MS = 10;

/**
 * Runs callers, kills the primary, promotes its standby, and looks for the acknowledged claims and
 * completions.
 */
export async function measureFailover(
  rig: Rig,
  setting: Setting,
  seed: number,
  signal: AbortSignal,
): Promise<Failover> {
  const { postgres } = rig;
  await using link = await startLink(postgres.url, setting);
  await postgres.addStandby({ standing: setting.standing, throughPort: link.port });
  const round = `${setting.standing}-${setting.link}-${seed}`;
  await using callers = startCallers(rig, round);
  await untilMs(nowMs() + LOAD_MS + createRandom(seed).below(MORE_LOAD_MS), signal);
  signal.throwIfAborted();
  const killedAtMs = nowMs();
  const stopped = callers.stop();
  await postgres.failOver();
  const movedAtMs = nowMs();
  const downMs = (await untilGranted(rig, round, signal)) - killedAtMs;
  await stopped;

  const { acknowledgements } = callers;
  const names = new Map(acknowledgements.map(({ record }) => [nameOf(record), record]));
  const reads = await readAll(rig, [...names.values()], signal);
  const losses = lossesOf(acknowledgements, new Map(reads.map((read) => [nameOf(read), read.seen])));
  const before = acknowledgements.filter(({ atMs }) => atMs <= movedAtMs);
  const count = (kind: "claim" | "complete") => before.filter((entry) => entry.kind === kind).length;
  return {
    setting,
    seed,
    acknowledged: { claims: count("claim"), completes: count("complete") },
    lost: { claims: losses.claims.length, completes: losses.completes.length },
    lostForMs: lostForMs(losses, killedAtMs),
    tokensAgain: await claimAgain(rig, losses.claims),
    downMs,
  };
}

/** Claims keys until one is granted, and returns when that was. */
async function untilGranted(rig: Rig, round: string, signal: AbortSignal): Promise<number> {
  const clients = rig.replicas.map((_, number) => connectTo(rig, number));
  const giveUpAtMs = nowMs() + BACK_TIMEOUT_MS;
  for (let tries = 0; nowMs() < giveUpAtMs && !signal.aborted; tries++) {
    const claim = { namespace: NAMESPACE, key: `x.${round}-again-${tries}` };
    const reply = await clients[tries % clients.length]
      ?.claim(claim, { timeoutMs: TRY_TIMEOUT_MS })
      .catch(unlessRefused);
    if (reply?.outcome.case === "claimed") return nowMs();
    await pause(REST_MS);
  }
  signal.throwIfAborted();
  throw new Error(`nothing was granted within ${BACK_TIMEOUT_MS} ms of the failover`);
}

/** Opens the connection from a standby to its primary; without a port for a direct one. */
async function startLink(primaryUrl: string, { link }: Setting) {
  if (link === "local") return { port: undefined, [Symbol.asyncDispose]: async () => {} };
  const proxy = await startTcpProxy(socketOf(primaryUrl));
  proxy.setMode("delay");
  return { port: proxy.port, [Symbol.asyncDispose]: () => proxy.close() };
}
