import { createRepeating, type Repeating } from "../background/repeat.ts";
import type { StoredTotals } from "../domain/quotas.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Pool } from "../store/pool.ts";
import { addTotals, type TotalsChange } from "../store/tenants/tenant-totals.ts";

/**
 * What tenants store, near enough for a quota: what the database says of all replicas, and what this one knows to have
 * changed since. What it does not know of (another replica's last seconds, a checkpoint, the row of an ended record that
 * is claimed anew) comes with the next count.
 */
export interface StorageTotals {
  /** So much more is stored, or, if negative, less. */
  add(change: TotalsChange): void;
  /** What the tenant stores now. */
  of(tenant: Tenant): StoredTotals;
  /** Reserves room for so many more records, or, if negative, returns it. */
  reserve(tenantId: number, records: number): void;
  /** For how many records room is reserved. */
  reservedOf(tenantId: number): number;
  start(): void;
  /** Stores what has not been stored yet. */
  stop(): Promise<void>;
}

export interface StorageTotalsOptions {
  readonly pool: Pool;
  readonly onFailed: (error: unknown) => void;
}

interface Tally {
  /** What has changed and is not stored. */
  records: number;
  storedBytes: number;
  /** Records that claims under way may add. */
  reserved: number;
  /** What the database had when the last change was stored, in `performance.now()` milliseconds. */
  stored: StoredTotals;
  storedAtMs: number;
}

/** What comes between a count and a flush is counted twice until the next count: so a second's worth, at most. */
const FLUSH_INTERVAL_MS = 1000;
/** Tenants in a statement: few, so that their rows are not locked for long. */
const MAX_FLUSHED = 1000;
/** By then every tenant has been read anew. */
const MAX_TALLY_AGE_MS = 10_000;
const NOTHING: StoredTotals = { records: 0, storedBytes: 0 };

/** @see StorageTotals */
export function createStorageTotals({ pool, onFailed }: StorageTotalsOptions): StorageTotals {
  const tallies = new Map<number, Tally>();

  /** A flush that fails is made again: if it had an effect all the same, the next count sets that right. */
  async function flush(): Promise<void> {
    const changes: TotalsChange[] = [];
    for (const [tenantId, { records, storedBytes }] of tallies) {
      if (changes.length === MAX_FLUSHED) break;
      if (records !== 0 || storedBytes !== 0) changes.push({ tenantId, records, storedBytes });
    }
    if (changes.length > 0) await store(changes);
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

  const flushes: Repeating = createRepeating({ intervalMs: FLUSH_INTERVAL_MS, work: flush, onFailed });
  return {
    add({ tenantId, records, storedBytes }) {
      const tally = tallyOf(tenantId);
      tally.records += records;
      tally.storedBytes += storedBytes;
    },

    of({ id, totals, cacheEpoch }) {
      const tally = tallies.get(id);
      if (tally === undefined) return totals;
      const latest = tally.storedAtMs > cacheEpoch.askedAtMs ? tally.stored : totals;
      return {
        records: latest.records + tally.records,
        storedBytes: latest.storedBytes + tally.storedBytes,
      };
    },

    reserve(tenantId, records) {
      tallyOf(tenantId).reserved += records;
    },

    reservedOf: (tenantId) => tallies.get(tenantId)?.reserved ?? 0,

    start: flushes.start,
    async stop() {
      await flushes.stop();
      await flush().catch(onFailed);
    },
  };
}
