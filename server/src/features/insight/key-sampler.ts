import { createHmac } from "node:crypto";
import { createRepeating, type Repeating } from "../../core/background/repeat.ts";
import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import { createTextHash } from "../../core/domain/text-hash.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { SweptNamespace } from "../../core/store/records/sweep-records.ts";
import { countLateRepeats, type SampledClaim } from "../usage/store/late-repeats.ts";
import { createKeyHashes, type KeyHashes } from "./domain/key-hashes.ts";
import { createEndedKeys, type EndedKeys } from "./ended-keys.ts";
import type { FirstClaims } from "./first-claims.ts";
import { NextTurn } from "./next-turn.ts";
import { createSampleShifts, type SampleShifts } from "./sample-shifts.ts";
import { addTombstones, limitSample } from "./store/tombstones.ts";

/*
 * The deterministic sample of keys. A key's depth is the number of trailing zero bits of a keyed hash: one key
 * in 2^s has a depth of at least s, the same keys on every replica and in Postgres, so that every repeat of a
 * sampled key is seen. A smaller sample is a subset of each larger one.
 *
 * The hash is the one of Postgres' `hashtextextended`, because the sweep selects keys in SQL; only its lower 32 bits matter.
 * It selects and is never stored; what is stored is an HMAC.
 */

/** Depths are cut off here. One key in 4 billion is this deep. */
const MAX_DEPTH = 32;

/**
 * Returns a function that returns a key's depth: from 0 to 32, and at least s for one key in 2^s.
 *
 * @param seed of the hash, a signed 64-bit number. Two installations sample different keys.
 */
export function createDepthOf(seed: bigint): (key: string) => number {
  const hashOf = createTextHash(seed);
  return (key) => {
    const hash = hashOf(key);
    return hash === 0 ? MAX_DEPTH : 31 - Math.clz32(hash & -hash);
  };
}

interface KeySamplerOptions {
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
const MAX_TOMBSTONES = 65_536;

/**
 * Finds repeats that come after the sweep deleted their record, among a deterministic sample of keys. It stores
 * a tombstone of each sampled key that was swept, and looks the first claims of sampled keys up among the
 * tombstones. Everything happens behind the calls, in batches. From its stop on, nothing may be swept or claimed.
 */
export class KeySampler implements Repeating {
  /** Selects the keys that the sweep names. */
  readonly seed: bigint;
  readonly #options: KeySamplerOptions;
  readonly #hashes: KeyHashes;
  readonly #depthOf: (key: string) => number;
  readonly #shifts: SampleShifts;
  readonly #ended: EndedKeys;
  readonly start: Repeating["start"];
  readonly stop: Repeating["stop"];
  /** Their tombstones may be another replica's. */
  readonly #claims: NextTurn<SampledClaim>;

  constructor(options: KeySamplerOptions) {
    const { pool, maxTombstones = MAX_TOMBSTONES, intervalMs, onFailed } = options;
    this.#options = options;
    this.#hashes = createKeyHashes(options.pepper);
    this.seed = createHmac("sha256", options.pepper).update("onceward sample").digest().readBigInt64BE();
    this.#depthOf = createDepthOf(this.seed);
    this.#shifts = createSampleShifts(pool, limitSample, maxTombstones);
    this.#ended = createEndedKeys(this.#depthOf, options.onDropped);
    this.#claims = new NextTurn(options.onDropped);
    // The last claims, too: no later turn looks them up.
    const turns = createRepeating({ intervalMs, work: () => this.#turn(), turnsAtStop: 2, onFailed });
    this.start = turns.start;
    this.stop = turns.stop;
  }

  /** Whether a namespace has tombstones. */
  isSampled(of: UsedNamespace): boolean {
    return this.#shifts.of(of) !== undefined;
  }

  /** Takes the keys of records that the sweep deleted. */
  swept(byNamespace: readonly SweptNamespace[]): void {
    for (const { sampled, ...of } of byNamespace)
      if (sampled.length > 0) this.#ended.add(of, this.#shifts.of(of), sampled);
  }

  /** Takes the meter's first claims in sampled namespaces, and keeps those of sampled keys. */
  selectClaims(): void {
    const { ids, atMs, retentionsS } = this.#options.takeFirstClaims();
    for (const [index, id] of ids.entries()) {
      const shift = this.#shifts.of(id);
      const depth = this.#depthOf(id.key);
      if (shift === undefined || depth < shift) continue;
      const { tenantId, namespace, key } = id;
      const hash = this.#hashes.ofKey(id, key);
      const [claimedAtMs = 0, retentionS = 0] = [atMs[index], retentionsS[index]];
      this.#claims.add({ tenantId, namespace, hash, depth, atMs: claimedAtMs, retentionS, shift });
    }
  }

  async #turn(): Promise<void> {
    const { pool } = this.#options;
    this.selectClaims();
    await this.#shifts.store(this.#ended, (batch) => {
      const keys = batch.map((ended) => ({ ...ended, hash: this.#hashes.ofKey(ended, ended.key) }));
      return addTombstones(pool, keys);
    });
    await this.#shifts.refresh();
    await this.#claims.store((batch) => countLateRepeats(pool, batch));
  }
}
