import type { Figure } from "../figure.ts";
import { ratioOf } from "../finding.ts";
import { alternate } from "../load.ts";
import { FreshClaims } from "../target.ts";
import { openUnaryTarget } from "../target-unary.ts";

const CALLERS = 256;

/** Measures P12, the cost of the pipeline around the core, with unary calls, so that each claim pays it. */
export const measureOverhead: Figure = async ({ rig, violations, signal, pace, progress }) => {
  progress(`with and without the pipeline, ${CALLERS} callers`);
  await using whole = await rig.startStation();
  await using bare = await rig.startStation({ on: whole, bare: true });
  await using wholeTarget = await openUnaryTarget(whole);
  await using bareTarget = await openUnaryTarget(bare);
  const withIt = new FreshClaims(wholeTarget, violations);
  const without = new FreshClaims(bareTarget, violations);
  const sides = { withIt: withIt.claim, without: without.claim };
  const measured = await alternate(sides, { ...pace, callers: CALLERS }, signal);
  await withIt.verify();
  await without.verify();
  return [
    ratioOf(
      {
        figure: "P12",
        what: "unary claims/s with authentication, metrics, deadlines ÷ without",
        bar: { atLeast: 0.85 },
      },
      { "with /s": measured.withIt.perSecond, "without /s": measured.without.perSecond },
    ),
  ];
};
