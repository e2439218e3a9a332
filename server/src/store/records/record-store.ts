import type { TenantShares } from "../batching/tenant-shares.ts";
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
export function createRecordStore(pool: Pool, shares: TenantShares): RecordStore {
  const fillPayload = createFillPayload(pool, shares);
  const readings = createReadings(pool, shares);
  return {
    claim: createClaimRecords(pool, readings, fillPayload, shares),
    complete: createCompleteRecords(pool, readings, shares),
    release: createReleaseRecords(pool, readings, shares),
    extendLease: createExtendLeases(pool, readings, shares),
    read: createReadRecords(readings, fillPayload),
  };
}
