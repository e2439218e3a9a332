import { type DatabaseClock, UNCHECKED_CLOCK } from "../../domain/database-clock.ts";
import type { RecordLoss } from "../../domain/late-keys.ts";
import { createTokenFloor, type TokenFloor } from "../../domain/token-floor.ts";
import type { TenantLimiter } from "../batching/fair-queue.ts";
import type { RecordsDatabase } from "../batching/sharded-batcher.ts";
import type { Shards } from "../batching/shards.ts";
import type { Pool } from "../pool.ts";
import { createClaimRecords } from "./claim-records.ts";
import { createCompleteRecords } from "./complete-records.ts";
import { createExtendLeases } from "./extend-leases.ts";
import { createFillResult } from "./large-results.ts";
import { createReadings, createReadRecords } from "./read-records.ts";
import { PLAIN_VALUES, type RecordValues } from "./record-values.ts";
import { createReleaseRecords } from "./release-records.ts";

/**
 * The operations on records. Each takes many records, and batches those of all the replica's callers into few
 * statements.
 */
export type RecordStore = ReturnType<typeof createRecordStore>;

const NO_LOSS: RecordLoss = { lastAtMs: 0 };

/** Creates the operations on records. One per replica, because larger batches are more efficient. */
export function createRecordStore(
  pool: Pool,
  limiter: TenantLimiter,
  {
    values = PLAIN_VALUES,
    shards,
    databaseClock = UNCHECKED_CLOCK,
    tokenFloor = createTokenFloor(),
    recordLoss = NO_LOSS,
  }: {
    readonly values?: RecordValues;
    /** Undefined on a plain Postgres. */
    readonly shards?: Shards | undefined;
    readonly databaseClock?: DatabaseClock;
    readonly tokenFloor?: TokenFloor;
    readonly recordLoss?: Readonly<RecordLoss>;
  } = {},
) {
  const database: RecordsDatabase = { pool, shards };
  const fillResult = createFillResult(database, values, limiter);
  const readings = createReadings(database, values, limiter, databaseClock);
  const parts = { readings, values, limiter };
  return {
    claim: createClaimRecords(database, { ...parts, fillResult, databaseClock, tokenFloor, recordLoss }),
    complete: createCompleteRecords(database, parts),
    release: createReleaseRecords(database, parts),
    extendLease: createExtendLeases(database, parts),
    read: createReadRecords(readings, fillResult),
  };
}
