import type { Figure } from "../figure.ts";
import { runSlice } from "../load.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 1024;
const SAMPLE_EVERY_MS = 100;
/** After its start, until the server counts as idle. */
const SETTLE_MS = 2000;

/**
 * Measures P9, the server's resident memory: idle after its start, and the most while 1,024 callers claim and
 * complete.
 */
export const measureMemory: Figure = async ({ rig, options, violations, signal, progress }) => {
  progress("memory");
  await using station = await rig.startStation();
  const { server } = station;
  await new Promise((resolve) => setTimeout(resolve, options.quick ? SETTLE_MS / 4 : SETTLE_MS));
  const idleMiB = await server.rssMb();
  let mostMiB = idleMiB;
  const sample = async () => {
    mostMiB = Math.max(mostMiB, await server.rssMb());
  };
  const sampler = setInterval(() => void sample().catch(() => {}), SAMPLE_EVERY_MS);
  try {
    const fresh = new FreshClaims(oncewardTarget(station.client.calls, station.database), violations);
    await runSlice(fresh.pair, { callers: CALLERS, durationMs: options.quick ? 700 : 15_000 }, signal);
    await fresh.verify();
  } finally {
    clearInterval(sampler);
  }
  return [
    {
      figure: "P9",
      part: "callers",
      what: "server RSS, most at 1,024 callers (claim+complete)",
      value: mostMiB,
      unit: "MiB",
      bar: { atMost: 300 },
      raw: {},
    },
    {
      figure: "P9",
      part: "idle",
      what: "server RSS, idle after its start",
      value: idleMiB,
      unit: "MiB",
      bar: { atMost: 130 },
      raw: {},
    },
  ];
};
