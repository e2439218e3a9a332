import { createRepeating } from "../background/repeat.ts";
import type { Pool } from "../database/pool.ts";
import { addTotals, type TotalsChange } from "../database/tenants/tenant-totals.ts";
import type { StoredTotals } from "../domain/quotas.ts";
import type { Tenant } from "../domain/tenant.ts";

/**
 * The numbers of records and bytes that tenants store, precise enough for a quota: the totals of the database
 * plus the changes of this replica since. Unknown changes (of other replicas in the last seconds, of
 * checkpoints, of ended records that are claimed again) are included from the next count on.
 */
export type StorageTotals = ReturnType<typeof createStorageTotals>;

interface Tally {
  /** Changes that are not stored yet. */
  records: number;
  storedBytes: number;
  /** Records that claims in flight may add. */
  reserved: number;
  /** The database's totals when the last change was stored. */
  stored: StoredTotals;
  /** In `performance.now()` milliseconds. */
  storedAtMs: number;
}

/**
 * Changes between a count and a flush are counted twice until the next count: at most those of one second.
 */
const FLUSH_INTERVAL_MS = 1000;
/** Tenants per statement: few, so that their rows are not locked for long. */
const MAX_STORED_TOGETHER = 1000;
/** After this time every tenant has been read again. */
const MAX_TALLY_AGE_MS = 10_000;
const NOTHING: StoredTotals = { records: 0, storedBytes: 0 };

/** Creates the totals of tenants' records and bytes. */
export function createStorageTotals(options: {
  readonly pool: Pool;
  readonly onFailed: (error: unknown) => void;
}) {
  const { pool, onFailed } = options;
  const tallies = new Map<number, Tally>();

  /**
   * Stores the changes of all tenants. A failed flush is repeated; if it had an effect nevertheless, the next count corrects the
   * totals.
   */
  async function flush(): Promise<void> {
    const changes: TotalsChange[] = [];
    for (const [tenantId, { records, storedBytes }] of tallies) {
      if (records !== 0 || storedBytes !== 0) changes.push({ tenantId, records, storedBytes });
    }
    for (let from = 0; from < changes.length; from += MAX_STORED_TOGETHER) {
      await store(changes.slice(from, from + MAX_STORED_TOGETHER));
    }
    for (const [tenantId, { records, storedBytes, reserved, storedAtMs }] of tallies) {
      const isOld = performance.now() - storedAtMs > MAX_TALLY_AGE_MS;
      if (isOld && records === 0 && storedBytes === 0 && reserved === 0) tallies.delete(tenantId);
    }
  }

  async function store(changes: readonly TotalsChange[]): Promise<void> {
    const stored = await addTotals(pool, changes);
    const storedAtMs = performance.now();
    for (const { tenantId, records, storedBytes } of changes) {
      const tally = tallies.get(tenantId);
      if (tally === undefined) continue;
      tally.records -= records;
      tally.storedBytes -= storedBytes;
    }
    for (const { tenantId, records, storedBytes } of stored) {
      const tally = tallies.get(tenantId);
      if (tally !== undefined) Object.assign(tally, { stored: { records, storedBytes }, storedAtMs });
    }
  }

  function tallyOf(tenantId: number): Tally {
    let tally = tallies.get(tenantId);
    if (tally === undefined) {
      const storedAtMs = Number.NEGATIVE_INFINITY;
      tally = { records: 0, storedBytes: 0, reserved: 0, stored: NOTHING, storedAtMs };
      tallies.set(tenantId, tally);
    }
    return tally;
  }

  return {
    ...createRepeating({ intervalMs: FLUSH_INTERVAL_MS, work: flush, turnsAtStop: 1, onFailed }),
    /** Adds a change, which may be negative. */
    add({ tenantId, records, storedBytes }: TotalsChange): void {
      const tally = tallyOf(tenantId);
      tally.records += records;
      tally.storedBytes += storedBytes;
    },

    /** Returns a tenant's totals. */
    of({ id, totals, cacheEpoch }: Tenant): StoredTotals {
      const tally = tallies.get(id);
      if (tally === undefined) return totals;
      const latest = tally.storedAtMs > cacheEpoch.askedAtMs ? tally.stored : totals;
      return {
        records: latest.records + tally.records,
        storedBytes: latest.storedBytes + tally.storedBytes,
      };
    },

    /** Reserves room for more records, or returns it if `records` is negative. */
    reserve(tenantId: number, records: number): void {
      tallyOf(tenantId).reserved += records;
    },

    /** Returns the number of records that room is reserved for. */
    reservedOf: (tenantId: number): number => tallies.get(tenantId)?.reserved ?? 0,
  };
}
