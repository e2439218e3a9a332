import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { type ClaimRecords, createClaimRecords } from "./claim-records.ts";
import { type CompleteRecords, createCompleteRecords } from "./complete-records.ts";
import { createExtendLeases, type ExtendLeases } from "./extend-leases.ts";
import { createFillPayload } from "./large-payloads.ts";
import { createReadings, createReadRecords, type ReadRecords } from "./read-records.ts";
import { createReleaseRecords, type ReleaseRecords } from "./release-records.ts";

/** The operations on records, each of many at once, and gathering those of all over the replica into few statements. */
export interface RecordStore {
  readonly claim: ClaimRecords;
  readonly complete: CompleteRecords;
  readonly release: ReleaseRecords;
  readonly extendLease: ExtendLeases;
  readonly read: ReadRecords;
}

/** One per replica: what it gathers is worth the more, the more calls come to it. */
export function createRecordStore(pool: Pool, limiter: TenantLimiter): RecordStore {
  const fillPayload = createFillPayload(pool, limiter);
  const readings = createReadings(pool, limiter);
  return {
    claim: createClaimRecords(pool, readings, fillPayload, limiter),
    complete: createCompleteRecords(pool, readings, limiter),
    release: createReleaseRecords(pool, readings, limiter),
    extendLease: createExtendLeases(pool, readings, limiter),
    read: createReadRecords(readings, fillPayload),
  };
}
