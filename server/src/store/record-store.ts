import type { WeightOf } from "./batcher.ts";
import { type ClaimRecord, createClaimRecord } from "./claim-records.ts";
import { type CompleteRecord, createCompleteRecord } from "./complete-records.ts";
import { createExtendLease, type ExtendLease } from "./extend-leases.ts";
import { createFillPayload } from "./large-payloads.ts";
import type { Pool } from "./pool.ts";
import { createReadRecord, type ReadRecord } from "./read-records.ts";
import { createReleaseRecord, type ReleaseRecord } from "./release-records.ts";

/** The operations on records, each gathering its calls from all over the replica into few statements. */
export interface RecordStore {
  readonly claim: ClaimRecord;
  readonly complete: CompleteRecord;
  readonly release: ReleaseRecord;
  readonly extendLease: ExtendLease;
  readonly read: ReadRecord;
}

/** One per replica: what it gathers is worth the more, the more calls come to it. */
export function createRecordStore(pool: Pool, weightOf: WeightOf): RecordStore {
  const fillPayload = createFillPayload(pool, weightOf);
  return {
    claim: createClaimRecord(pool, fillPayload, weightOf),
    complete: createCompleteRecord(pool, weightOf),
    release: createReleaseRecord(pool, weightOf),
    extendLease: createExtendLease(pool, weightOf),
    read: createReadRecord(pool, fillPayload, weightOf),
  };
}
