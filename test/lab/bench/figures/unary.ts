import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import type { Figure } from "../figure.ts";
import { measure } from "../load.ts";
import { FreshClaims, prepareReplays } from "../target.ts";
import { openUnaryTarget } from "../target-unary.ts";

const run = promisify(execFile);

/** Pins all threads of a process to the last core; false if there is no `taskset`. */
async function pinToOneCore(pid: number): Promise<boolean> {
  try {
    await run("taskset", ["-a", "-c", "-p", String(availableParallelism() - 1), String(pid)]);
    return true;
  } catch {
    return false;
  }
}

const CALLERS = 256;
const KEYS = 1000;

/** Measures P4: plain unary gRPC, as clients of any language send it, to a server on one core. */
export const measureUnary: Figure = async ({ rig, violations, signal, pace, progress }) => {
  await using station = await rig.startStation();
  const pinned = await pinToOneCore(station.server.pid);
  const server = pinned ? "one core" : "one process (no taskset: not pinned)";
  await using target = await openUnaryTarget(station);
  const { among } = await prepareReplays(target, KEYS, violations);
  progress(`unary replays, ${CALLERS} callers`);
  const replays = await measure(among(KEYS), { ...pace, callers: CALLERS }, signal);
  progress(`unary claims, ${CALLERS} callers`);
  const fresh = new FreshClaims(target, violations);
  const before = await target.countKeys();
  const claims = await measure(fresh.claim, { ...pace, callers: CALLERS }, signal);
  await fresh.verify(before);
  return [
    {
      figure: "P4",
      part: "replays",
      what: `unary replays/s of a server on ${server}`,
      value: replays.perSecond,
      unit: "/s",
      bar: { atLeast: 20_000 },
      raw: { "p50 ms": replays.p50Ms, "p99 ms": replays.p99Ms },
    },
    {
      figure: "P4",
      part: "claims",
      what: `unary claims/s of a server on ${server}`,
      value: claims.perSecond,
      unit: "/s",
      bar: { atLeast: 12_000 },
      raw: { "p50 ms": claims.p50Ms, "p99 ms": claims.p99Ms },
    },
  ];
};
