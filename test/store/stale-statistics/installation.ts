import {
  countKeysUnderOtherPepper,
  findPepperMark,
  storeMark,
} from "../../../server/src/database/pepper-check.ts";
import { BEFORE_ALL_REPLICAS, beatReplicaRow, findReplicas } from "../../../server/src/database/replicas.ts";
import type { ReplicaLoad } from "../../../server/src/domain/replica.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH_ROWS } from "./rows.ts";

/** The load of a replica that does nothing. */
export const NO_LOAD: ReplicaLoad = {
  callsInFlight: 0,
  operationsPerSecond: 0,
  connections: 0,
  poolSize: 0,
  poolBusy: 0,
  poolAwaited: 0,
};

/** Statements of replicas and the pepper. */
export const INSTALLATION_WORK: ExplainedWork = {
  byKeys: {
    "compare peppers": async (pool) => {
      await findPepperMark(pool);
      await storeMark(pool, Buffer.alloc(32), undefined);
    },
    "store a heartbeat": (pool) =>
      beatReplicaRow(pool, {
        ...{ id: crypto.randomUUID(), version: "1", degraded: [], load: NO_LOAD },
        ...{ host: "replica-1", clockAheadMs: undefined, clockMovedMs: 0, clockExpectedMs: undefined },
      }),
  },
  overARange: {
    "count keys under another pepper": (pool) => countKeysUnderOtherPepper(pool, Buffer.alloc(32)),
    "list replicas": (pool) => findReplicas(pool, BEFORE_ALL_REPLICAS, BATCH_ROWS),
  },
  onOneRow: [
    "connect",
    "read_database_size",
    "remove_replica",
    "read_server_facts",
    "select_installation",
    "mark_installation",
    "raise_tenant_ids",
    "renew_installation",
    "mark_records_lost",
    "replace_installation_id",
    "raise_token_floor",
  ],
};
