import type { Figure } from "../figure.ts";
import { fillRecords } from "../fill.ts";
import { ratioOf } from "../finding.ts";
import { alternate } from "../load.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;

/** Measures P7: claims into a table with millions of rows, by turns with claims into one that was empty. */
export const measureFullTable: Figure = async ({ rig, options, violations, signal, pace, progress }) => {
  await using empty = await rig.startStation();
  await using full = await rig.startStation();
  progress(`filling a table with ${options.rows} rows`);
  await fillRecords(full, { rows: options.rows, signal });
  progress(`claims among ${options.rows} rows, ${CALLERS} callers`);
  const none = new FreshClaims(oncewardTarget(empty.client.calls, empty.database), violations);
  const many = new FreshClaims(oncewardTarget(full.client.calls, full.database), violations);
  const sides = { none: none.claim, many: many.claim };
  const measured = await alternate(sides, { ...pace, callers: CALLERS }, signal);
  await none.verify();
  await many.verify();
  return [
    ratioOf(
      {
        figure: "P7",
        what: `claims/s with ${options.rows.toLocaleString("en-US")} rows ÷ with none`,
        bar: { atLeast: 0.85 },
      },
      { "with /s": measured.many.perSecond, "without /s": measured.none.perSecond, rows: options.rows },
    ),
  ];
};
