import type { Bench, Figure } from "../figure.ts";
import { type Finding, ratioOf } from "../finding.ts";
import { alternate } from "../load.ts";
import { prepareReplays } from "../target.ts";
import { diyTarget } from "../target-diy.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;
/** Keys that all callers ask for. */
const HOT_KEYS = 10;
const SPREAD_KEYS = 100_000;
const QUICK_SPREAD_KEYS = 1000;

/** Measures P3: replays of completed keys. */
export const measureReplays: Figure = async (bench) => {
  const { rig, main, options, violations, progress } = bench;
  await using target = diyTarget(await rig.createDiyDatabase());
  const keys = options.quick ? QUICK_SPREAD_KEYS : SPREAD_KEYS;
  progress(`completing ${keys} keys to replay`);
  const onceward = await prepareReplays(oncewardTarget(main.client.calls, main.database), keys, violations);
  const diy = await prepareReplays(target, keys, violations);
  const measureAmong = (part: string, count: number) =>
    compare(bench, part, count, { onceward: onceward.among(count), diy: diy.among(count) });
  return [await measureAmong("hot", HOT_KEYS), await measureAmong("spread", keys)];
};

async function compare(
  { signal, pace, progress }: Bench,
  part: string,
  keys: number,
  sides: Readonly<Record<"onceward" | "diy", () => Promise<void>>>,
): Promise<Finding> {
  progress(`replays, ${CALLERS} callers, ${keys} keys`);
  const measured = await alternate(sides, { ...pace, callers: CALLERS }, signal);
  return ratioOf(
    { figure: "P3", part, what: `replays/s ÷ DIY, ${CALLERS} callers, ${keys} keys`, bar: { atLeast: 3 } },
    { "Onceward /s": measured.onceward.perSecond, "DIY /s": measured.diy.perSecond },
  );
}
