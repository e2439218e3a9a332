import type { Pool, Runner } from "../../../server/src/database/pool.ts";
import { pruneRows } from "../../../server/src/database/prune.ts";
import { createSampler } from "../../../server/src/insight/sampler.ts";
import { sweepBatch } from "../../../server/src/records/sweep.ts";
import { NAMESPACE_NAMES } from "./namespaces.ts";

/** The times of a tenant's rows, by table. */
const TIMES = {
  records: [
    ...["first_claimed_at", "claimed_at", "lease_expires_at", "pending_until", "settled_at", "expires_at"],
    ...["result_expires_at", "sweep_at"],
  ],
  insight_sample_shifts: ["since"],
  insight_sampled_keys: ["first_claimed_at", "ended_at", "keep_until"],
} as const;

/** Tables with a row for each hour. */
const HOURLY = ["usage_hours", "insight_hours", "insight_late_hours"] as const;

/** The rows of the tenant in the namespaces. */
const OWN = "tenant_id = $1::int and namespace = any($2::text[])";

/** Few enough that a statement takes less than the sweep's limit on a busy machine. */
const SWEEP_ROWS = 250;
const PRUNED_ROWS = 1000;
const MAX_ATTEMPTS = 5;

/** Lets time pass for the namespaces of one tenant, by moving the times of its rows in SQL: time is the database's clock. */
export interface Aging {
  /**
   * Makes everything in the namespaces older, sweeps what has ended, and prunes samples of keys: in one transaction, so that no
   * replica sees a record between, and nothing is found at the end of the run that is no longer found a minute later.
   */
  timePasses(seconds: number): Promise<void>;
  /** Moves the counts of the present hour back; `seconds` is a number of hours. */
  placeHours(seconds: number): Promise<void>;
  /** Moves the counts of the present day back. */
  placeDay(days: number): Promise<void>;
  /** Takes the tenant's calls out of what is known of the last hour by minutes: those of the past were made in it. */
  forgetMinutes(): Promise<void>;
  /** Returns the claims that are stored as counted in the present hour. */
  countedClaims(): Promise<number>;
}

/** @param pepper of the server, which selects the sampled keys. */
export function createAging(pool: Pool, tenantId: number, pepper: string): Aging {
  const beganAtMs = Date.now();
  return {
    async timePasses(seconds) {
      for (let attempt = 1; ; attempt++) {
        try {
          await pool.transaction((transaction) =>
            ageAndSweep(pool, transaction, { tenantId, seconds, pepper }),
          );
          return;
        } catch (error) {
          // Another replica's sweep may hold a lock; nothing was changed.
          if (attempt === MAX_ATTEMPTS) throw error;
        }
      }
    },
    async placeHours(seconds) {
      await pool.transaction(async (transaction) => {
        for (const table of HOURLY) {
          await transaction.run(
            {
              name: `place_${table}`,
              text: `update ${table} set hour = hour - $3::int * interval '1 second' where ${PRESENT}`,
            },
            [tenantId, NAMESPACE_NAMES, seconds],
          );
        }
      });
    },
    async placeDay(days) {
      await pool.run(
        {
          name: "place_insight_key_days",
          text: `
update insight_key_days set day = day - $3::int * interval '1 day'
 where ${OWN}
   and day >= date_trunc('day', to_timestamp($4::float8 / 1000) at time zone 'utc') at time zone 'utc'`,
        },
        [tenantId, NAMESPACE_NAMES, days, beganAtMs],
      );
    },
    async forgetMinutes() {
      for (const table of ["usage_minutes", "usage_now"])
        await pool.run({ name: `forget_${table}`, text: `update ${table} set counts = counts - $1::text` }, [
          String(tenantId),
        ]);
    },
    async countedClaims() {
      const [row] = await pool.run<{ claims: number }>(
        {
          name: "count_stored_claims",
          text: `select coalesce(sum(claims), 0)::int as claims from insight_hours where ${PRESENT}`,
        },
        [tenantId, NAMESPACE_NAMES],
      );
      return row?.claims ?? 0;
    },
  };
}

/** The hours that were not moved: a run takes less than this, and each move is longer. */
const PRESENT = `${OWN} and hour > now() - interval '12 hours'`;

async function ageAndSweep(
  pool: Pool,
  transaction: Runner,
  {
    tenantId,
    seconds,
    pepper,
  }: { readonly tenantId: number; readonly seconds: number; readonly pepper: string },
): Promise<void> {
  for (const [table, columns] of Object.entries(TIMES)) {
    const moved = columns.map((column) => `${column} = ${column} - $3::int * interval '1 second'`);
    await transaction.run(
      { name: `age_${table}`, text: `update ${table} set ${moved.join(", ")} where ${OWN}` },
      [tenantId, NAMESPACE_NAMES, seconds],
    );
  }
  while ((await pruneRows(transaction, "insight_sampled_keys", 0, PRUNED_ROWS)) === PRUNED_ROWS);
  let failure: unknown;
  const sampler = createSampler({
    pool: transaction,
    pepper,
    firstClaims: { take: () => [], beginInterval() {} },
    intervalMs: 60_000,
    onFailed: (error) => {
      failure ??= error;
    },
    onDropped: () => {
      failure ??= new Error("more keys ended at once than can be sampled");
    },
  });
  const within: Pool = { ...pool, run: transaction.run, transaction: (work) => work(transaction) };
  const observer = { found: () => {}, swept: sampler.swept };
  while ((await sweepBatch(within, SWEEP_ROWS, observer, sampler.seed)).due === SWEEP_ROWS);
  // Stores the tombstones; it was not started, so there is nothing else to stop.
  await sampler.stop();
  if (failure !== undefined) throw failure;
}
