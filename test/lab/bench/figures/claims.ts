import type { Figure } from "../figure.ts";
import { type Finding, ratioOf } from "../finding.ts";
import { measureLimit } from "../limit.ts";
import { alternate } from "../load.ts";
import { FreshClaims } from "../target.ts";
import { diyTarget } from "../target-diy.ts";
import { oncewardTarget } from "../target-onceward.ts";

/** By callers: × DIY where a commit is slow, and where it is so fast that DIY makes `FAST_DIY` claims a second. */
const BARS = new Map([
  [64, { slow: 2.2, fast: 2.2 }],
  [256, { slow: 3, fast: 2.8 }],
  [1024, { slow: 4, fast: 3.5 }],
]);
const FAST_DIY = 16_000;
/** P6 is measured with these callers. */
const P6_CALLERS = 64;

/** Measures P1, durable claims a second, and P6, the 99th percentile of the same claims. */
export const measureClaims: Figure = async ({ rig, main, options, violations, signal, pace, progress }) => {
  const findings: Finding[] = [];
  const database = await rig.createDiyDatabase();
  await using target = diyTarget(database);
  const onceward = new FreshClaims(oncewardTarget(main.client.calls, main.database), violations);
  const diy = new FreshClaims(target, violations);
  for (const [callers, bar] of BARS) {
    if (!options.only.has("P1") && callers !== P6_CALLERS) continue;
    progress(`claims, ${callers} callers`);
    const sides = { onceward: onceward.claim, diy: diy.claim };
    const measured = await alternate(sides, { ...pace, callers }, signal);
    findings.push(
      ratioOf(
        {
          figure: "P1",
          part: String(callers),
          what: `claims/s ÷ DIY, ${callers} callers`,
          bar: { atLeast: measured.diy.perSecond >= FAST_DIY ? bar.fast : bar.slow },
        },
        { "Onceward /s": measured.onceward.perSecond, "DIY /s": measured.diy.perSecond },
      ),
    );
    if (callers !== P6_CALLERS) continue;
    findings.push(
      ratioOf(
        { figure: "P6", what: `p99 of a claim ÷ DIY, ${callers} callers`, bar: { atMost: 1 } },
        { "Onceward ms": measured.onceward.p99Ms, "DIY ms": measured.diy.p99Ms },
      ),
    );
  }
  await onceward.verify();
  await diy.verify();
  if (options.only.has("P1")) findings.push(...(await limit()));
  return findings;

  /** Measures the rows a second that Postgres takes at most, and Onceward's share of them. */
  async function limit(): Promise<readonly Finding[]> {
    progress("the limit: pgbench");
    const most = await measureLimit(database, options.quick ? 1 : 5, signal);
    const best = Math.max(...findings.map(({ raw }) => raw["Onceward /s"] ?? 0));
    if (most === undefined) {
      progress("pgbench is not on the PATH: the limit is skipped");
      return [];
    }
    return [
      ratioOf(
        { figure: "P1", part: "limit", what: "best claims/s ÷ limit (pgbench, 200 rows a statement)" },
        { "Onceward /s": best, "limit rows/s": most.rowsPerSecond },
      ),
    ];
  }
};
