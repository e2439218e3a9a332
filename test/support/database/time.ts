import { isMessage } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  durationMs,
  type Timestamp,
  TimestampSchema,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";
import { openPool, type Pool } from "../../../server/src/database/pool.ts";
import { sweepBatch } from "../../../server/src/records/sweep.ts";
import type { TestTenant } from "../servers/tenants.ts";
import type { TestDatabase } from "./database.ts";

/** Forgets a tenant's records: markers stay, and cached copies of the records are no longer found. */
export async function forgetRecords(database: TestDatabase, { id }: TestTenant): Promise<void> {
  await database.query(
    `with forgotten as (update records set state = 0 where tenant_id = $1)
     update tenants set cache_generation = cache_generation + 1 where id = $1`,
    [id],
  );
}

/** Returns the number of a tenant's rows in any state. */
export async function countRows(database: TestDatabase, { id }: TestTenant): Promise<number> {
  const rows = await database.query("select 1 from records where tenant_id = $1", [id]);
  return rows.length;
}

const SWEEP_ROWS = 1000;

/** Sweeps all due rows. */
export async function sweep(database: TestDatabase): Promise<void> {
  const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
  try {
    await sweepAll(pool);
  } finally {
    await pool.close();
  }
}

/** The same, by a pool that is open. */
export async function sweepAll(pool: Pool): Promise<void> {
  while ((await sweepBatch(pool, SWEEP_ROWS)).due === SWEEP_ROWS);
}

const HOUR_MS = 3_600_000;
/** Longer than a test of hours or days takes, on a machine that is four times oversubscribed. */
const REST_OF_HOUR_MS = 45_000;

/**
 * Waits while the hour ends within 45 s, so that a test of what is counted by hour or by day does not see two hours.
 * The database of a test has this machine's clock.
 */
export async function awaitYoungHour(): Promise<void> {
  const leftMs = () => HOUR_MS - (Date.now() % HOUR_MS);
  await expect.poll(leftMs, { timeout: 60_000, interval: 200 }).toBeGreaterThan(REST_OF_HOUR_MS);
}

/** Returns the seconds from one time to another, to the microsecond. */
export function secondsBetween(from: Timestamp | undefined, to: Timestamp | undefined): number {
  if (from === undefined || to === undefined) throw new Error("a moment is missing");
  return Number(to.seconds - from.seconds) + (to.nanos - from.nanos) / 1e9;
}

/** Returns a duration in seconds. */
export function secondsOf(duration: Duration | undefined): number {
  if (duration === undefined) throw new Error("a duration is missing");
  return durationMs(duration) / 1000;
}

/**
 * Longer than a history of calls takes. All its times are multiples of this, so that rounding separates them.
 */
const GRAIN_MS = 10_000;

/**
 * Returns a message with its times as seconds since `nowMs`; these and longer durations are rounded to 10 s.
 * Two services give the same result if their clocks differ by less.
 */
export function relativeTimes(value: unknown, nowMs: number): unknown {
  if (Array.isArray(value)) return value.map((item) => relativeTimes(item, nowMs));
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (isMessage(value, TimestampSchema)) return `at ${toGrainS(timestampMs(value) - nowMs)} s`;
  if (isMessage(value, DurationSchema)) {
    const ms = durationMs(value);
    return ms < GRAIN_MS / 2 ? `${ms} ms` : `${toGrainS(ms)} s`;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name, relativeTimes(field, nowMs)]),
  );
}

function toGrainS(ms: number): number {
  // Adding 0 makes -0 a 0.
  return (Math.round(ms / GRAIN_MS) * GRAIN_MS) / 1000 + 0;
}
