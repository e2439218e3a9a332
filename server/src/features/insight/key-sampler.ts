import { createHmac } from "node:crypto";
import { createRepeating, type Repeating } from "../../core/background/repeat.ts";
import { type RecordId, recordName } from "../../core/domain/record.ts";
import { createTextHash } from "../../core/domain/text-hash.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { SweptNamespace } from "../../core/store/records/sweep-records.ts";
import { countLateRepeats, type SampledClaim } from "../usage/store/late-repeats.ts";
import { createKeyHashes, type KeyHashes } from "./domain/key-hashes.ts";
import { createEndedKeys, type EndedKeys } from "./ended-keys.ts";
import type { FirstClaims } from "./first-claims.ts";
import { createSampleShifts } from "./sample-shifts.ts";
import type { NamespaceSample } from "./store/sample-limits.ts";
import { addTombstones, limitSample } from "./store/tombstones.ts";

/*
 * The deterministic sample of keys. A key's depth is the number of trailing zero bits of a keyed hash: one key
 * in 2^s has a depth of at least s, the same keys on every replica and in Postgres, so that every repeat of a
 * sampled key is seen. A smaller sample is a subset of each larger one.
 *
 * The hash is the one of Postgres' `hashtextextended`, because the sweep selects keys in SQL; only its lower 32 bits matter.
 * It selects and is never stored; what is stored is an HMAC.
 */

/** The seed of the sample's hash, a signed 64-bit number. Two installations sample different keys. */
export type SampleSeed = bigint;

/** Depths are cut off here. One key in 4 billion is this deep. */
const MAX_DEPTH = 32;

/** Returns a function that returns a key's depth: from 0 to 32, and at least s for one key in 2^s. */
export function createDepthOf(seed: SampleSeed): (key: string) => number {
  const hashOf = createTextHash(seed);
  return (key) => {
    const hash = hashOf(key);
    return hash === 0 ? MAX_DEPTH : 31 - Math.clz32(hash & -hash);
  };
}

export interface KeySamplerOptions {
  readonly pool: Runner;
  readonly takeFirstClaims: () => FirstClaims;
  /** Makes the keys of the hashes. */
  readonly pepper: string;
  readonly intervalMs: number;
  readonly onFailed: (error: unknown) => void;
  /** Called for each tombstone or claim that is dropped because too many wait to be stored. */
  readonly onDropped: () => void;
  /** Maximum tombstones of a namespace. */
  readonly maxTombstones?: number;
}

/**
 * The 3 million observations behind "at most one in a million" pass through as many tombstones in a year, if
 * each is kept for a week. About 8 MiB.
 */
export const MAX_TOMBSTONES = 65_536;
/** Rows per statement: some tens of milliseconds. */
const BATCH_ROWS = 1000;
/** Waiting claims: some 10 MiB. It is reached if statements fail for long. */
const MAX_WAITING = 50_000;

/**
 * Finds repeats that come after the sweep deleted their record, among a deterministic sample of keys. It stores
 * a tombstone of each sampled key that was swept, and looks the first claims of sampled keys up among the
 * tombstones. Everything happens behind the calls, in batches. From its stop on, nothing may be swept or claimed.
 */
export class KeySampler implements Repeating {
  /** Selects the keys that the sweep names. */
  readonly seed: SampleSeed;
  readonly #options: KeySamplerOptions;
  readonly #hashes: KeyHashes;
  readonly #depthOf: (key: string) => number;
  readonly #shifts = createSampleShifts();
  readonly #ended: EndedKeys;
  readonly start: Repeating["start"];
  readonly stop: Repeating["stop"];
  #claims: SampledClaim[] = [];
  /** Claims whose tombstones other replicas have had the time of a turn to store. */
  #dueClaims: SampledClaim[] = [];

  constructor(options: KeySamplerOptions) {
    this.#options = options;
    this.#hashes = createKeyHashes(options.pepper);
    this.seed = createHmac("sha256", options.pepper).update("onceward sample").digest().readBigInt64BE();
    this.#depthOf = createDepthOf(this.seed);
    this.#ended = createEndedKeys(this.#depthOf, options.onDropped);
    const { intervalMs, onFailed } = options;
    // The last claims, too: no later turn looks them up.
    const turns = createRepeating({ intervalMs, work: () => this.#turn(), turnsAtStop: 2, onFailed });
    this.start = turns.start;
    this.stop = turns.stop;
  }

  /** Whether a namespace has tombstones. */
  isSampled({ tenantId, namespace }: Pick<RecordId, "tenantId" | "namespace">): boolean {
    return this.#shifts.of(tenantId, namespace) !== undefined;
  }

  /** Takes the keys of records that the sweep deleted. */
  swept(byNamespace: readonly SweptNamespace[]): void {
    for (const { tenantId, namespace, sampled } of byNamespace) {
      const shift = this.#shifts.of(tenantId, namespace);
      if (sampled.length > 0) this.#ended.add(tenantId, namespace, shift, sampled);
    }
  }

  /** Takes the meter's first claims in sampled namespaces, and keeps those of sampled keys. */
  selectClaims(): void {
    const { ids, atMs, retentionsS } = this.#options.takeFirstClaims();
    for (const [index, id] of ids.entries()) {
      const shift = this.#shifts.of(id.tenantId, id.namespace);
      const depth = this.#depthOf(id.key);
      if (shift === undefined || depth < shift) continue;
      if (this.#claims.length + this.#dueClaims.length >= MAX_WAITING) {
        this.#options.onDropped();
        continue;
      }
      const { tenantId, namespace } = id;
      const [claimedAtMs = 0, retentionS = 0] = [atMs[index], retentionsS[index]];
      this.#claims.push({
        tenantId,
        namespace,
        hash: this.#hash(id),
        depth,
        atMs: claimedAtMs,
        retentionS,
        shift,
      });
    }
  }

  async #turn(): Promise<void> {
    this.selectClaims();
    await this.#storeEnded();
    await this.#shifts.refresh(this.#options.pool);
    await this.#countClaims();
    this.#dueClaims.push(...this.#claims);
    this.#claims = [];
  }

  /** Stores tombstones, and keeps each sample within its maximum. A failed batch is repeated by the next turn. */
  async #storeEnded(): Promise<void> {
    const { pool, maxTombstones = MAX_TOMBSTONES } = this.#options;
    const full = new Map<string, NamespaceSample>();
    for (let batch = this.#ended.take(BATCH_ROWS); batch.length > 0; batch = this.#ended.take(BATCH_ROWS)) {
      const hashed = batch.map((ended) => ({ ...ended, hash: this.#hash(ended) }));
      const samples = await addTombstones(pool, hashed).catch((error: unknown) => {
        this.#ended.putBack(batch);
        throw error;
      });
      for (const sample of samples) {
        this.#shifts.set(sample);
        if (sample.held > maxTombstones) full.set(recordName({ ...sample, key: "" }), sample);
      }
    }
    for (const sample of full.values()) {
      const limited = await limitSample(pool, sample, maxTombstones);
      if (limited !== undefined) this.#shifts.set(limited);
    }
  }

  async #countClaims(): Promise<void> {
    while (this.#dueClaims.length > 0) {
      const batch = this.#dueClaims.slice(0, BATCH_ROWS);
      await countLateRepeats(this.#options.pool, batch);
      this.#dueClaims.splice(0, batch.length);
    }
  }

  #hash(id: RecordId): Buffer {
    return this.#hashes.ofKey(id, id.key);
  }
}
