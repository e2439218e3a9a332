import type { Bench, Figure } from "../figure.ts";
import { type Due, fillingMs, fillRecords } from "../fill.ts";
import { ratioOf } from "../finding.ts";
import { runSlice, type Slice, summarize } from "../load.ts";
import type { Station } from "../rig.ts";
import { FreshClaims } from "../target.ts";
import { oncewardTarget } from "../target-onceward.ts";

const CALLERS = 256;
/** Much longer than the time between two sweeps. */
const SLICE_MS = 8000;
const QUICK_SLICE_MS = 1000;
/** How long the sweep may take to catch up after a slice; rows that are left count into the next slice. */
const CATCH_UP_MS = 20_000;
/** Between the slice before the rows are due and the slice in which they become due. */
const BETWEEN_MS = 500;

/**
 * Measures P8: claims while as many rows become due for the sweep, evenly over a slice. Both slices of a turn
 * find the same rows, the first before they are due, and both begin after a checkpoint: for a while after a
 * checkpoint Postgres logs whole pages.
 */
export const measureSweeping: Figure = async (bench) => {
  const { rig, options, violations, signal, pace, progress } = bench;
  await using station = await rig.startStation({ env: { ONCEWARD_SWEEP_INTERVAL: "500ms" } });
  const fresh = new FreshClaims(oncewardTarget(station.client.calls, station.database), violations);
  const durationMs = options.quick ? QUICK_SLICE_MS : SLICE_MS;
  const claimFor = (ms: number) => runSlice(fresh.claim, { callers: CALLERS, durationMs: ms }, signal);
  await claimFor(pace.warmUpMs);
  // The last slice without a sweep: as many rows become due as it would claim.
  let lately = await claimFor(pace.warmUpMs);
  const slices: { readonly without: Slice[]; readonly during: Slice[] } = { without: [], during: [] };
  const lagsS: number[] = [];
  for (let turn = 0; turn < (options.quick ? 1 : 3); turn++) {
    const rows = Math.round((lately.perSecond * durationMs) / 1000);
    progress(`claims among ${rows} rows that are not due yet`);
    const due = {
      from: new Date(Date.now() + fillingMs(rows) + durationMs + BETWEEN_MS),
      overMs: durationMs,
    };
    await fillRecords(station, { rows, signal, due });
    lately = await claimFor(durationMs);
    slices.without.push(lately);
    await station.database.query("checkpoint");
    progress(`claims while ${rows} rows become due`);
    await untilDue(due);
    slices.during.push(await claimFor(durationMs));
    lagsS.push(await readLagS(station));
    await untilSwept(station, bench);
  }
  await fresh.verify();
  const [without, during] = [summarize(slices.without), summarize(slices.during)];
  return [
    ratioOf(
      {
        figure: "P8",
        part: "claims",
        what: "claims/s while the sweep removes as much as comes in ÷ without",
        bar: { atLeast: 0.85 },
      },
      { "with /s": during.perSecond, "without /s": without.perSecond },
    ),
    {
      figure: "P8",
      part: "lag",
      what: `the sweep's lag after ${durationMs / 1000} s of it`,
      value: Math.max(...lagsS),
      unit: "s",
      bar: { atMost: 1.5 },
      raw: {},
    },
  ];
};

/**
 * Waits until rows are due.
 *
 * @throws Error if they are due already: then the slice before measured the sweep too.
 */
async function untilDue({ from }: Due): Promise<void> {
  const leftMs = from.getTime() - Date.now();
  if (leftMs < 0) throw new Error(`rows were due ${-leftMs} ms before they should have been`);
  await new Promise((resolve) => setTimeout(resolve, leftMs));
}

/** Returns how long the most overdue row has waited, in seconds. */
async function readLagS({ database }: Station): Promise<number> {
  const [row] = await database.query<{ lag_s: number }>(
    "select coalesce(date_part('epoch', now() - min(sweep_at)), 0) as lag_s from records where sweep_at <= now()",
  );
  return row?.lag_s ?? 0;
}

async function untilSwept(station: Station, { signal, progress }: Bench): Promise<void> {
  const giveUpAtMs = performance.now() + CATCH_UP_MS;
  while ((await readLagS(station)) > 0) {
    signal.throwIfAborted();
    if (performance.now() > giveUpAtMs) return progress("the sweep did not catch up");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
