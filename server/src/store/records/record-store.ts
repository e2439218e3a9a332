import type { TenantLimiter } from "../batching/fair-queue.ts";
import type { Pool } from "../pool.ts";
import { type ClaimRecords, createClaimRecords } from "./claim-records.ts";
import { type CompleteRecords, createCompleteRecords } from "./complete-records.ts";
import { createExtendLeases, type ExtendLeases } from "./extend-leases.ts";
import { createFillPayload } from "./large-payloads.ts";
import { createReadings, createReadRecords, type ReadRecords } from "./read-records.ts";
import { type RecordEncryption, WITHOUT_KEYS } from "./record-encryption.ts";
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

/** Creates the operations on records. One per replica, because larger batches are more efficient. */
export function createRecordStore(
  pool: Pool,
  limiter: TenantLimiter,
  encryption: RecordEncryption = WITHOUT_KEYS,
): RecordStore {
  const fillPayload = createFillPayload(pool, encryption, limiter);
  const readings = createReadings(pool, encryption, limiter);
  return {
    claim: createClaimRecords(pool, { readings, fillPayload, encryption, limiter }),
    complete: createCompleteRecords(pool, { readings, encryption, limiter }),
    release: createReleaseRecords(pool, readings, limiter),
    extendLease: createExtendLeases(pool, { readings, encryption, limiter }),
    read: createReadRecords(readings, fillPayload),
  };
}
