import type { Pool } from "../database/pool.ts";
import { type DatabaseClock, UNCHECKED_CLOCK } from "../domain/database-clock.ts";
import { createClaimRecords } from "./claim/claim-records.ts";
import { createCompleteRecords } from "./complete.ts";
import type { TenantLimiter } from "./engine/fair-queue.ts";
import { createFillResult } from "./engine/large-results.ts";
import { createReadings } from "./engine/read-records.ts";
import { PLAIN_VALUES, type RecordValues } from "./engine/record-values.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import type { Shards } from "./engine/shards.ts";
import { createExtendLeases } from "./extend-lease.ts";
import type { RecordLoss } from "./late-keys.ts";
import { createReadRecords } from "./lookup.ts";
import { createReleaseRecords } from "./release.ts";
import { createTokenFloor, type TokenFloor } from "./token-floor.ts";

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
