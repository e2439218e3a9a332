import type { Figure } from "../figure.ts";
import { ratioOf } from "../finding.ts";
import { alternate } from "../load.ts";
import { FreshClaims } from "../target.ts";
import { diyTarget } from "../target-diy.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** Measures P2: claim, then complete. */
export const measurePairs: Figure = async ({ rig, main, violations, signal, pace, progress }) => {
  progress("claim and complete, 256 callers");
  await using target = diyTarget(await rig.createDiyDatabase());
  const onceward = new FreshClaims(oncewardTarget(main.client.calls, main.database), violations);
  const diy = new FreshClaims(target, violations);
  const sides = { onceward: onceward.pair, diy: diy.pair };
  const measured = await alternate(sides, { ...pace, callers: 256 }, signal);
  await onceward.verify();
  await diy.verify();
  return [
    ratioOf(
      { figure: "P2", what: "claim+complete pairs/s ÷ DIY, 256 callers", bar: { atLeast: 2.5 } },
      { "Onceward /s": measured.onceward.perSecond, "DIY /s": measured.diy.perSecond },
    ),
  ];
};
