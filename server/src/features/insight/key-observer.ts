import { createRepeating } from "../../core/background/repeat.ts";
import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import type { Pool } from "../../core/store/pool.ts";
import type { SweptNamespace } from "../../core/store/records/sweep-records.ts";
import type { KeyHashes } from "./domain/key-hashes.ts";
import { keyStem } from "./domain/key-shape.ts";
import type { ObservedClaim } from "./first-claims.ts";
import { createObservedKeys, type WaitingClaim } from "./observed-keys.ts";
import { createSampleShifts } from "./sample-shifts.ts";
import { addObservedKeys, limitKeySample, removeSampledKeys, type SampledKey } from "./store/key-samples.ts";
import type { NamespaceSample } from "./store/sample-limits.ts";

/** A share of one retry in 100 claims is seen 80 times: enough to distinguish it from chance. About 2 MiB. */
export const MAX_SAMPLED_KEYS = 8192;
/** Rows per statement: some tens of milliseconds. */
const BATCH_ROWS = 1000;
/** Waiting forgotten keys: some 10 MiB. It is reached if statements fail for long. */
const MAX_FORGOTTEN = 50_000;

type ForgottenKey = Pick<SampledKey, "tenantId" | "namespace" | "keyHash">;

/**
 * Observes how keys are made: the shapes of some, and the first claims of a deterministic sample of
 * fingerprints. Everything happens behind the calls, in batches. From its stop on, nothing may be swept or claimed.
 */
export function createKeyObserver(options: {
  readonly pool: Pool;
  readonly takeObserved: () => readonly ObservedClaim[];
  /** Called at each turn, after the claims were taken. */
  readonly beginInterval?: () => void;
  readonly hashes: KeyHashes;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
  /** Called for each claim or forgotten key that is dropped because too many wait to be stored. */
  readonly onDropped: () => void;
  /** Maximum sampled keys of a namespace. */
  readonly maxSampledKeys?: number;
}) {
  const { pool, hashes, takeObserved, onDropped, maxSampledKeys = MAX_SAMPLED_KEYS } = options;
  const shifts = createSampleShifts();
  const observed = createObservedKeys(onDropped);
  let forgotten: ForgottenKey[] = [];
  /** Forgotten keys whose claims other replicas have had the time of a turn to store. */
  let dueForgotten: ForgottenKey[] = [];

  const fingerprintShiftOf = ({ tenantId, namespace }: UsedNamespace) => shifts.of(tenantId, namespace) ?? 0;

  function takeClaims(): void {
    for (const claim of takeObserved()) observed.add(claim, fingerprintShiftOf(claim.id));
  }

  function sampledKey({ id, fingerprint, depth, atMs }: WaitingClaim): SampledKey {
    const { tenantId, namespace, key } = id;
    const stem = keyStem(key);
    return {
      tenantId,
      namespace,
      fingerprintHash: hashes.ofFingerprint(id, fingerprint),
      keyHash: hashes.ofKey(id, key),
      stemHash: stem === undefined ? undefined : hashes.ofKey(id, stem),
      depth,
      claimedAtMs: atMs,
    };
  }

  /** Stores what was observed, and keeps each sample within its maximum. A failed batch is repeated by the next turn. */
  async function storeObserved(): Promise<void> {
    const full: NamespaceSample[] = [];
    for (let batch = observed.take(BATCH_ROWS); batch.length > 0; batch = observed.take(BATCH_ROWS)) {
      const keys = batch.flatMap(({ claims }) => claims.map(sampledKey));
      const samples = await pool
        .transaction((transaction) => addObservedKeys(transaction, batch, keys))
        .catch((error: unknown) => {
          observed.putBack(batch);
          throw error;
        });
      for (const sample of samples) {
        shifts.set(sample);
        if (sample.held > maxSampledKeys) full.push(sample);
      }
    }
    for (const sample of full) {
      const limited = await limitKeySample(pool, sample, maxSampledKeys);
      if (limited !== undefined) shifts.set(limited);
    }
  }

  async function removeForgotten(): Promise<void> {
    while (dueForgotten.length > 0) {
      const batch = dueForgotten.slice(0, BATCH_ROWS);
      await removeSampledKeys(pool, batch);
      dueForgotten.splice(0, batch.length);
    }
    dueForgotten = forgotten;
    forgotten = [];
  }

  async function turn(): Promise<void> {
    takeClaims();
    options.beginInterval?.();
    await storeObserved();
    await removeForgotten();
  }

  const { intervalMs, onFailed } = options;
  return {
    // The last forgotten keys, too: no later turn removes them.
    ...createRepeating({ intervalMs, work: turn, turnsAtStop: 2, onFailed }),
    /** Returns the shift of a namespace's sample as this replica knows it. */
    fingerprintShiftOf,
    /** Takes the meter's observed claims. */
    takeClaims,
    /** Takes the forgotten keys among those whose records the sweep deleted. */
    swept(byNamespace: readonly SweptNamespace[]): void {
      for (const { tenantId, namespace, sampled } of byNamespace) {
        for (const { key, forgotten: isForgotten } of sampled) {
          if (!isForgotten) continue;
          if (forgotten.length + dueForgotten.length >= MAX_FORGOTTEN) onDropped();
          else forgotten.push({ tenantId, namespace, keyHash: hashes.ofKey({ tenantId, namespace }, key) });
        }
      }
    },
  };
}
