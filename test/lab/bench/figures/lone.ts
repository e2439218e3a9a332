import type { Bench, Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { alternate, type Step } from "../load.ts";
import { FreshClaims, prepareReplays } from "../target.ts";
import { diyTarget } from "../target-diy.ts";
import { oncewardTarget } from "../target-onceward.ts";

const KEYS = 1000;

/** Measures P5: the latency of a single caller that makes one call after another. */
export const measureLone: Figure = async (bench) => {
  const { rig, main, violations } = bench;
  const { target, pool } = diyTarget(await rig.createDiyDatabase());
  try {
    const onceward = oncewardTarget(main.client.calls, main.database);
    const claims = {
      onceward: new FreshClaims(onceward, violations),
      diy: new FreshClaims(target, violations),
    };
    const claim = await compare(bench, "claim", 2, {
      onceward: claims.onceward.claim,
      diy: claims.diy.claim,
    });
    await claims.onceward.verify();
    await claims.diy.verify();
    const replays = {
      onceward: (await prepareReplays(onceward, KEYS, violations)).among(KEYS),
      diy: (await prepareReplays(target, KEYS, violations)).among(KEYS),
    };
    return [claim, await compare(bench, "replay", 1.5, replays)];
  } finally {
    await pool.end();
  }
};

async function compare(
  { signal, pace, progress }: Bench,
  part: string,
  atMost: number,
  sides: Readonly<Record<"onceward" | "diy", Step>>,
): Promise<Finding> {
  progress(`a lone ${part}`);
  const measured = await alternate(sides, { ...pace, callers: 1 }, signal);
  return {
    figure: "P5",
    part,
    what: `p50 of a lone ${part} ÷ DIY`,
    value: measured.onceward.p50Ms / measured.diy.p50Ms,
    unit: "×",
    bar: { atMost },
    raw: { "Onceward ms": measured.onceward.p50Ms, "DIY ms": measured.diy.p50Ms },
  };
}
