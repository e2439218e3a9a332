import { DECLINED, type Declined } from "../../../server/src/key-history/declined-keys.ts";
import { readKeyHistory } from "../../../server/src/key-history/get-key-history.ts";
import { removeKeyHistories, storeKeyHistories } from "../../../server/src/key-history/key-histories.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, tombstoneHash } from "./rows.ts";

const COUNTS = Object.fromEntries(DECLINED.map((name) => [name, 1])) as Record<Declined, number>;
const slotOf = (n: number) => ({ tenantId: CROWDED_TENANT, slot: n, hash: tombstoneHash(n) });

/** Statements of what was declined of keys. */
export const KEY_HISTORY_WORK: ExplainedWork = {
  byKeys: {
    "store key histories": (pool) =>
      storeKeyHistories(
        pool,
        BATCH.map((n) => ({
          ...slotOf(n),
          ...{ namespace: "charges", counts: COUNTS, firstAtMs: 0, lastAtMs: 0, calls: [] },
        })),
      ),
    "read a key's history": (pool) => readKeyHistory(pool, slotOf(11)),
  },
  overARange: {
    "remove the key histories of a namespace": (pool) =>
      removeKeyHistories(pool, CROWDED_TENANT, "no-such-namespace"),
  },
};
