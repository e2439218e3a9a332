import { pruneRows } from "../../../server/src/database/prune.ts";
import { noShapes } from "../../../server/src/insight/domain/key-quality.ts";
import { findObservedNamespaces } from "../../../server/src/insight/get-key-quality.ts";
import {
  findPromptFingerprints,
  findReturnedKeys,
  readExamples,
} from "../../../server/src/insight/key-examples.ts";
import { readKeyObservations } from "../../../server/src/insight/key-observations.ts";
import { addSampledKeys, removeSampledKeys } from "../../../server/src/insight/sampled-keys.ts";
import { limitSample, listChangedSamples } from "../../../server/src/insight/samples.ts";
import { readObservations } from "../../../server/src/insight/stored-observations.ts";
import { CROWDED_TENANT } from "../../support/database/crowded-tables.ts";
import type { ExplainedWork } from "./explained-work.ts";
import { BATCH, BATCH_ROWS, ROWS, tombstoneHash } from "./rows.ts";

/** Of the crowded tenant's sampled keys. */
const CROWDED = { tenantId: CROWDED_TENANT, namespace: "charges" };
const namespaceOf = (n: number) => ({ tenantId: CROWDED_TENANT, namespace: `namespace-${n}` });

/** Statements of what is observed of retention and of keys. */
export const INSIGHT_WORK: ExplainedWork = {
  byKeys: {
    "add sampled keys": (pool) =>
      addSampledKeys(
        pool,
        BATCH.map((n) => {
          const hash = tombstoneHash(n);
          const added = { shift: 0, depth: 3, keyHash: hash, stemHash: undefined, firstClaimedAtMs: 0 };
          return n % 20 === 1
            ? { ...CROWDED, ...added, kind: "key", fingerprintHash: Buffer.alloc(0), endedAtMs: 1000 }
            : {
                ...namespaceOf(n),
                ...added,
                kind: "fingerprint",
                fingerprintHash: hash,
                endedAtMs: undefined,
              };
        }),
        BATCH.map((n) => ({ ...namespaceOf(n), shapes: { ...noShapes(), claims: 1 } })),
      ),
    "remove sampled keys": (pool) =>
      removeSampledKeys(
        pool,
        BATCH.map((n) => ({ ...CROWDED, keyHash: tombstoneHash(n) })),
      ),
    "list changed samples": (pool) =>
      listChangedSamples(pool, { changedAtMs: 0, tenantId: 0, namespace: "", kind: "" }, BATCH_ROWS),
  },
  overARange: {
    "limit a sample of keys": (pool) => limitSample(pool, { ...CROWDED, kind: "key" }, ROWS / 2),
    "limit a sample of fingerprints": (pool) =>
      limitSample(pool, { ...CROWDED, kind: "fingerprint" }, ROWS / 2),
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
