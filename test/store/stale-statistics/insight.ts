import { pruneRows } from "../../../server/src/core/store/prune.ts";
import {
  findObservedNamespaces,
  findPromptFingerprints,
  findReturnedKeys,
  readExamples,
  readKeyObservations,
} from "../../../server/src/features/insight/store/key-observations.ts";
import {
  addObservedKeys,
  limitKeySample,
  removeSampledKeys,
} from "../../../server/src/features/insight/store/key-samples.ts";
import { readObservations } from "../../../server/src/features/insight/store/observations.ts";
import {
  addTombstones,
  limitSample,
  listChangedSamples,
} from "../../../server/src/features/insight/store/tombstones.ts";
import { CROWDED_TENANT } from "../../helpers/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, BATCH_ROWS, ROWS, tombstoneHash } from "./rows.ts";

/** Of the crowded tenant's tombstones. */
const CROWDED = { tenantId: CROWDED_TENANT, namespace: "charges" };

/** Statements of what is observed of retention and of keys. */
export const INSIGHT_WORK: ExplainedWork = {
  byKeys: {
    "add tombstones": (pool) =>
      addTombstones(
        pool,
        BATCH.map((n) => ({
          tenantId: CROWDED_TENANT,
          namespace: "charges",
          hash: tombstoneHash(n),
          depth: 3,
          shift: 0,
          firstClaimedAtMs: 0,
          endedAtMs: 1000,
          forgotten: n % 2 === 0,
        })),
      ),
    "add observed keys": (pool) =>
      addObservedKeys(
        pool,
        BATCH.map((n) => ({
          ...{ tenantId: CROWDED_TENANT, namespace: `namespace-${n}`, shift: 0 },
          shapes: {
            claims: 1,
            withoutFingerprint: 0,
            times: 0,
            attempts: 0,
            randomUuids: 0,
            promptUuids: 0,
          },
        })),
        BATCH.map((n) => ({
          ...{ tenantId: CROWDED_TENANT, namespace: `namespace-${n}`, depth: 3, claimedAtMs: 0 },
          ...{ fingerprintHash: tombstoneHash(n), keyHash: tombstoneHash(n), stemHash: undefined },
        })),
      ),
    "remove sampled keys": (pool) =>
      removeSampledKeys(
        pool,
        BATCH.map((n) => ({ ...CROWDED, keyHash: tombstoneHash(n) })),
      ),
    "list changed samples": (pool) =>
      listChangedSamples(pool, { changedAtMs: 0, tenantId: 0, namespace: "" }, BATCH_ROWS),
  },
  overARange: {
    "limit a sample": (pool) =>
      limitSample(pool, { tenantId: CROWDED_TENANT, namespace: "charges" }, ROWS / 2),
    "read observations": (pool) =>
      readObservations(
        pool,
        CROWDED_TENANT,
        new Map([
          ["charges", 86_400],
          ["refunds", 86_400],
        ]),
      ),
    "prune observed hours": (pool) => pruneRows(pool, "insight_hours", 0, BATCH_ROWS),
    "prune hours of late repeats": (pool) => pruneRows(pool, "insight_late_hours", 0, BATCH_ROWS),
    "prune tombstones": (pool) => pruneRows(pool, "insight_tombstones", 0, BATCH_ROWS),
    "limit a sample of keys": (pool) =>
      limitKeySample(pool, { tenantId: CROWDED_TENANT, namespace: "charges" }, ROWS / 2),
    "read observed keys": (pool) => readKeyObservations(pool, CROWDED_TENANT, "charges"),
    "list observed namespaces": (pool) => findObservedNamespaces(pool, CROWDED_TENANT, "", BATCH_ROWS),
    "find prompt fingerprints": (pool) =>
      findPromptFingerprints(pool, CROWDED, { isCounted: false, limit: BATCH_ROWS }),
    "find returned keys": (pool) => findReturnedKeys(pool, CROWDED, BATCH_ROWS),
    "read examples": (pool) => readExamples(pool, CROWDED, BATCH_ROWS),
    "prune shapes of keys": (pool) => pruneRows(pool, "insight_key_days", 0, BATCH_ROWS),
    "prune sampled keys": (pool) => pruneRows(pool, "insight_sampled_keys", 0, BATCH_ROWS),
  },
  onOneRow: ["remove_samples"],
};
