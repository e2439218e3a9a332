import { type DatabaseClock, UNCHECKED_CLOCK } from "../../domain/database-clock.ts";
import type { RecordLoss } from "../../domain/late-keys.ts";
import { createTokenFloor, type TokenFloor } from "../../domain/token-floor.ts";
import type { TenantLimiter } from "../batching/fair-queue.ts";
import type { RecordsDatabase } from "../batching/sharded-batcher.ts";
import type { Shards } from "../batching/shards.ts";
import type { Pool } from "../pool.ts";
import { type ClaimRecords, createClaimRecords } from "./claim-records.ts";
import { type CompleteRecords, createCompleteRecords } from "./complete-records.ts";
import { createExtendLeases, type ExtendLeases } from "./extend-leases.ts";
import { createFillResult } from "./large-results.ts";
import { createReadings, createReadRecords, type ReadRecords } from "./read-records.ts";
import { PLAIN_VALUES, type RecordValues } from "./record-values.ts";
import { createReleaseRecords, type ReleaseRecords } from "./release-records.ts";

/**
 * The operations on records. Each takes many records, and batches those of all the replica's callers into few
 * statements.
 */
export interface RecordStore {
  readonly claim: ClaimRecords;
  readonly complete: CompleteRecords;
  readonly release: ReleaseRecords;
  readonly extendLease: ExtendLeases;
  readonly read: ReadRecords;
}

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
): RecordStore {
  const database: RecordsDatabase = { pool, shards };
  const fillResult = createFillResult(database, values, limiter);
  const readings = createReadings(database, values, limiter, databaseClock);
  return {
    claim: createClaimRecords(database, {
      readings,
      fillResult,
      values,
      limiter,
      databaseClock,
      tokenFloor,
      recordLoss,
    }),
    complete: createCompleteRecords(database, { readings, values, limiter }),
    release: createReleaseRecords(database, readings, limiter),
    extendLease: createExtendLeases(database, { readings, values, limiter }),
    read: createReadRecords(readings, fillResult),
  };
}
