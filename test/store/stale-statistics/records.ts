import { findResolved } from "../../../server/src/records/claim/find-resolved.ts";
import { UNLIMITED } from "../../../server/src/records/engine/fair-queue.ts";
import { createRecordStore } from "../../../server/src/records/record-store.ts";
import { digestResult } from "../../../server/src/records/result-digest.ts";
import { sweepBatch } from "../../../server/src/records/sweep.ts";
import { claimCommand, DONE } from "../../support/calls/domain.ts";
import { CROWDED_TENANT, crowdedKey, LARGE_KEYS } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, BATCH_ROWS, NO_DEADLINE } from "./rows.ts";

function idOf(n: number) {
  return { tenantId: CROWDED_TENANT, namespace: "charges", key: crowdedKey(n) };
}

/** Statements of calls and the sweep. */
export const RECORDS_WORK: ExplainedWork = {
  byKeys: {
    sweep: (pool) => sweepBatch(pool, BATCH_ROWS),
    complete: (pool) =>
      createRecordStore(pool, UNLIMITED).complete(
        BATCH.map((n) => ({
          id: idOf(n),
          fencingToken: 1n,
          result: DONE,
          resultDigest: digestResult(DONE),
          keyRetentionS: undefined,
        })),
        NO_DEADLINE,
      ),
    release: (pool) =>
      createRecordStore(pool, UNLIMITED).release(
        BATCH.map((n) => ({ id: idOf(n + 1), fencingToken: 1n, reason: "", giveBack: false })),
        NO_DEADLINE,
      ),
    "extend leases": (pool) =>
      createRecordStore(pool, UNLIMITED).extendLease(
        BATCH.map((n) => ({
          id: idOf(n + 2),
          fencingToken: 1n,
          leaseMs: undefined,
          checkpoint: undefined,
          begin: false,
        })),
        NO_DEADLINE,
      ),
    "take over": (pool) =>
      createRecordStore(pool, UNLIMITED).claim(
        BATCH.map((n) => claimCommand({ id: idOf(n + 3) })),
        NO_DEADLINE,
      ),
    read: (pool) => createRecordStore(pool, UNLIMITED).read(BATCH.map(idOf), NO_DEADLINE),
    "read large payloads": (pool) =>
      createRecordStore(pool, UNLIMITED).read(LARGE_KEYS.map(idOf), NO_DEADLINE),
    "find resolved records": (pool) => findResolved({ pool }, BATCH.map(idOf)),
  },
  overARange: {},
  onOneRow: ["claim_record"],
  // test/store/sweep-limits.test.ts and sweep.test.ts.
  elsewhere: ["delete_ended_records"],
};
