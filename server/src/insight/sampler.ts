import { createHmac } from "node:crypto";
import { countLateRepeats, type SampledClaim } from "../admin/usage/late-repeats.ts";
import { createRepeating } from "../background/repeat.ts";
import type { Runner } from "../database/pool.ts";
import type { UsedNamespace } from "../records/after-operation.ts";
import type { SweptNamespace } from "../records/sweep.ts";
import { DeferredQueue } from "./deferred-queue.ts";
import { createDepthOf, fingerprintDepth } from "./domain/depth.ts";
import { createKeyHashes, type KeyHashes } from "./domain/key-hashes.ts";
import { countShape, noShapes } from "./domain/key-quality.ts";
import { keyStem } from "./domain/key-shape.ts";
import type { FirstClaim, FirstClaims, Sampling } from "./first-claims.ts";
import { createSampleShifts } from "./sample-shifts.ts";
import { addSampledKeys, removeSampledKeys, type SampledKey } from "./sampled-keys.ts";
import { createWaitingSamples, type WaitingKey, type WaitingSample } from "./waiting-samples.ts";

/**
 * Maximum tombstones of a namespace. The 3 million observations behind "at most one in a million" pass through as many
 * tombstones in a year, if each is kept for a week. About 8 MiB.
 */
const MAX_TOMBSTONES = 65_536;
/**
 * Maximum keys of a namespace's sampled fingerprints. A share of one retry in 100 claims is seen 80 times: enough to
 * distinguish it from chance. About 2 MiB.
 */
const MAX_FINGERPRINTS = 8192;

const NO_FINGERPRINT = Buffer.alloc(0);

export type Sampler = ReturnType<typeof createSampler>;

/**
 * Samples keys and fingerprints. It finds repeats that come after the sweep deleted their record: it stores a tombstone of each
 * sampled key that was swept, and looks the first claims of sampled keys up among the tombstones. And it observes how keys are
 * made: the shapes of some, and the first claims of sampled fingerprints. Everything happens after the calls, in batches. From
 * its stop on, nothing may be swept or claimed.
 */
export function createSampler(options: {
  readonly pool: Runner;
  readonly firstClaims: Pick<FirstClaims, "take" | "beginInterval">;
  /** Makes the keys of the hashes. */
  readonly pepper: string;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
  /** Called with the number of keys or claims that are dropped because too many wait to be stored. */
  readonly onDropped: (count: number) => void;
  readonly maxTombstones?: number;
}) {
  const { pool, firstClaims, pepper, intervalMs, onFailed, onDropped } = options;
  const seed = createHmac("sha256", pepper).update("onceward sample").digest().readBigInt64BE();
  const hashes = createKeyHashes(pepper);
  const depthOf = createDepthOf(seed);
  const shifts = createSampleShifts(pool, {
    key: options.maxTombstones ?? MAX_TOMBSTONES,
    fingerprint: MAX_FINGERPRINTS,
  });
  const waiting = createWaitingSamples(onDropped);
  /** First claims of sampled keys. Their tombstones may be another replica's. */
  const claims = new DeferredQueue<SampledClaim>(() => onDropped(1));
  /** Forgotten keys, which another replica may have sampled. */
  const forgottenKeys = new DeferredQueue<UsedNamespace & Pick<SampledKey, "keyHash">>(() => onDropped(1));

  const tombstoneShiftOf = ({ tenantId, namespace }: UsedNamespace) =>
    shifts.of({ tenantId, namespace, kind: "key" });
  const fingerprintShiftOf = ({ tenantId, namespace }: UsedNamespace) =>
    shifts.of({ tenantId, namespace, kind: "fingerprint" }) ?? 0;

  function observe({ id, fingerprint, atMs }: FirstClaim): void {
    const { tenantId, namespace, key } = id;
    const shapes = noShapes();
    countShape(shapes, key, atMs, fingerprint !== undefined);
    const keys: readonly WaitingKey[] =
      fingerprint === undefined
        ? []
        : [{ key, fingerprint, depth: fingerprintDepth(fingerprint), firstClaimedAtMs: atMs }];
    waiting.add({ tenantId, namespace, kind: "fingerprint", shift: fingerprintShiftOf(id), keys, shapes });
  }

  function lookUp({ id, atMs, retentionS }: FirstClaim): void {
    const { tenantId, namespace, key } = id;
    const shift = tombstoneShiftOf(id);
    if (shift === undefined) return;
    const depth = depthOf(key);
    if (depth < shift) return;
    claims.add({ tenantId, namespace, keyHash: hashes.ofKey(id, key), depth, atMs, retentionS, shift });
  }

  function takeClaims(): void {
    for (const claim of firstClaims.take()) {
      if (claim.isObserved) observe(claim);
      lookUp(claim);
    }
  }

  async function turn(): Promise<void> {
    takeClaims();
    firstClaims.beginInterval();
    await shifts.store(waiting, (batch) =>
      addSampledKeys(
        pool,
        batch.flatMap((sample) => sampledKeys(sample, hashes)),
        batch.filter(({ shapes }) => shapes.claims > 0),
      ),
    );
    await shifts.refresh();
    await claims.store((batch) => countLateRepeats(pool, batch));
    await forgottenKeys.store((batch) => removeSampledKeys(pool, batch));
  }

  return {
    // The last claims and forgotten keys, too: no later turn takes them.
    ...createRepeating({ intervalMs, work: turn, turnsAtStop: 2, onFailed }),
    /** Selects the keys that the sweep names. */
    seed,
    /** Returns what is sampled of a namespace as this replica knows it. */
    samplingOf: (of: UsedNamespace): Sampling => ({
      hasTombstones: tombstoneShiftOf(of) !== undefined,
      fingerprintShift: fingerprintShiftOf(of),
    }),
    /** Takes first claims: counts those that are observed, and keeps those of sampled keys and fingerprints. */
    takeClaims,
    /** Takes the keys of records that the sweep deleted. */
    swept(byNamespace: readonly SweptNamespace[]): void {
      for (const { tenantId, namespace, sampled } of byNamespace) {
        const of = { tenantId, namespace };
        const keys: WaitingKey[] = [];
        for (const { forgotten, ...ended } of sampled) {
          if (forgotten) forgottenKeys.add({ ...of, keyHash: hashes.ofKey(of, ended.key) });
          else keys.push({ ...ended, depth: depthOf(ended.key) });
        }
        if (keys.length > 0) waiting.add({ ...of, kind: "key", shift: tombstoneShiftOf(of) ?? 0, keys });
      }
    },
  };
}

function sampledKeys(
  { keys, tenantId, namespace, kind, shift }: WaitingSample,
  hashes: KeyHashes,
): readonly SampledKey[] {
  const id = { tenantId, namespace, kind };
  return Array.from(keys.values(), ({ key, fingerprint, depth, firstClaimedAtMs, endedAtMs }) => {
    const stem = fingerprint === undefined ? undefined : keyStem(key);
    return {
      ...{ ...id, shift, depth, firstClaimedAtMs, endedAtMs },
      keyHash: hashes.ofKey(id, key),
      fingerprintHash: fingerprint === undefined ? NO_FINGERPRINT : hashes.ofFingerprint(id, fingerprint),
      stemHash: stem === undefined ? undefined : hashes.ofKey(id, stem),
    };
  });
}
