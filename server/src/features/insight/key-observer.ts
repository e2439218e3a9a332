import { createRepeating } from "../../core/background/repeat.ts";
import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import type { Pool } from "../../core/store/pool.ts";
import type { SweptNamespace } from "../../core/store/records/sweep-records.ts";
import type { KeyHashes } from "./domain/key-hashes.ts";
import { keyStem } from "./domain/key-shape.ts";
import type { ObservedClaim } from "./first-claims.ts";
import { NextTurn } from "./next-turn.ts";
import { createObservedKeys, type WaitingClaim } from "./observed-keys.ts";
import { createSampleShifts } from "./sample-shifts.ts";
import { addObservedKeys, limitKeySample, removeSampledKeys, type SampledKey } from "./store/key-samples.ts";

/** A share of one retry in 100 claims is seen 80 times: enough to distinguish it from chance. About 2 MiB. */
const MAX_SAMPLED_KEYS = 8192;

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
}) {
  const { pool, hashes, takeObserved, onDropped, intervalMs, onFailed } = options;
  const shifts = createSampleShifts(pool, limitKeySample, MAX_SAMPLED_KEYS);
  const observed = createObservedKeys(onDropped);
  /** Forgotten keys, whose claims may be another replica's. */
  const forgotten = new NextTurn<UsedNamespace & Pick<SampledKey, "keyHash">>(onDropped);

  const fingerprintShiftOf = (of: UsedNamespace) => shifts.of(of) ?? 0;

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

  async function turn(): Promise<void> {
    takeClaims();
    options.beginInterval?.();
    await shifts.store(observed, (batch) => {
      const keys = batch.flatMap(({ claims }) => claims.map(sampledKey));
      return pool.transaction((transaction) => addObservedKeys(transaction, batch, keys));
    });
    await forgotten.store((batch) => removeSampledKeys(pool, batch));
  }

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
          const of = { tenantId, namespace };
          if (isForgotten) forgotten.add({ ...of, keyHash: hashes.ofKey(of, key) });
        }
      }
    },
  };
}
