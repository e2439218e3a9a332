import { createHmac } from "node:crypto";
import { createRepeating } from "../../core/background/repeat.ts";
import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import type { RecordId } from "../../core/domain/record.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { SweptKey, SweptNamespace } from "../../core/store/records/sweep-records.ts";
import { countLateRepeats, type SampledClaim } from "../usage/store/late-repeats.ts";
import { DeferredQueue } from "./deferred-queue.ts";
import { createDepthOf } from "./domain/depth.ts";
import { createKeyHashes } from "./domain/key-hashes.ts";
import type { FirstClaims } from "./first-claims.ts";
import { createSampleShifts } from "./sample-shifts.ts";
import { nameOf } from "./store/sample-limits.ts";
import { addTombstones, type EndedKey, limitSample } from "./store/tombstones.ts";

/** A sampled key whose tombstone is not stored yet. */
type WaitingKey = Omit<EndedKey, "hash"> & RecordId;

/** Keys of one namespace: a statement's. More of them halve the sample. */
const MAX_PER_NAMESPACE = 1000;
/** About 10 MiB. It is reached if statements fail for long in many namespaces. */
const MAX_ENDED = 50_000;

interface Waiting {
  shift: number;
  readonly keys: Map<string, WaitingKey>;
}

/**
 * Keeps the sampled keys that the sweep has named since they were stored last: each once, as it ended last. A
 * namespace with very many gets a smaller sample before anything is stored, so that a busy sweep, such as the
 * first one of a namespace, costs no more than a quiet one.
 *
 * @param onDropped is called for each key that is dropped because too many wait.
 */
function createEndedKeys(depthOf: (key: string) => number, onDropped: () => void) {
  const namespaces = new Map<string, Waiting>();
  let size = 0;

  function waitingOf(of: UsedNamespace): Waiting {
    const name = nameOf(of);
    const known = namespaces.get(name);
    if (known !== undefined) return known;
    const added = { shift: 0, keys: new Map() };
    namespaces.set(name, added);
    return added;
  }

  function add(waiting: Waiting, ended: WaitingKey): void {
    const { keys } = waiting;
    if (ended.depth < waiting.shift) return;
    if (!keys.has(ended.key)) {
      if (size >= MAX_ENDED) {
        onDropped();
        return;
      }
      size++;
    }
    keys.set(ended.key, ended);
    while (keys.size > MAX_PER_NAMESPACE) raiseShift(waiting, waiting.shift + 1);
  }

  function raiseShift(waiting: Waiting, shift: number): void {
    waiting.shift = shift;
    for (const [key, { depth }] of waiting.keys) {
      if (depth < shift && waiting.keys.delete(key)) size--;
    }
  }

  return {
    /** Adds keys, at most one in 2^shift of the namespace's; undefined: any. */
    add({ tenantId, namespace }: UsedNamespace, shift = 0, keys: readonly SweptKey[]): void {
      const waiting = waitingOf({ tenantId, namespace });
      if (shift > waiting.shift) raiseShift(waiting, shift);
      for (const key of keys)
        add(waiting, { tenantId, namespace, ...key, depth: depthOf(key.key), shift: 0 });
    },
    /** Removes and returns up to `max` keys. */
    take(max: number): readonly WaitingKey[] {
      const taken: WaitingKey[] = [];
      for (const [name, { shift, keys }] of namespaces) {
        for (const [key, ended] of keys) {
          if (taken.length === max) return taken;
          taken.push({ ...ended, shift });
          keys.delete(key);
          size--;
        }
        namespaces.delete(name);
      }
      return taken;
    },
    /** Adds keys that could not be stored, unless they have ended again. */
    putBack(keys: readonly WaitingKey[]): void {
      for (const ended of keys) {
        const waiting = waitingOf(ended);
        if (ended.shift > waiting.shift) raiseShift(waiting, ended.shift);
        if (!waiting.keys.has(ended.key)) add(waiting, ended);
      }
    },
  };
}

/**
 * The 3 million observations behind "at most one in a million" pass through as many tombstones in a year, if
 * each is kept for a week. About 8 MiB.
 */
const MAX_TOMBSTONES = 65_536;

export type KeySampler = ReturnType<typeof createKeySampler>;

/**
 * Finds repeats that come after the sweep deleted their record, among a deterministic sample of keys. It stores
 * a tombstone of each sampled key that was swept, and looks the first claims of sampled keys up among the
 * tombstones. Everything happens behind the calls, in batches. From its stop on, nothing may be swept or claimed.
 */
export function createKeySampler(options: {
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
}) {
  const { pool, pepper, intervalMs, onFailed, onDropped, maxTombstones = MAX_TOMBSTONES } = options;
  const seed = createHmac("sha256", pepper).update("onceward sample").digest().readBigInt64BE();
  const hashes = createKeyHashes(pepper);
  const depthOf = createDepthOf(seed);
  const shifts = createSampleShifts(pool, limitSample, maxTombstones);
  const ended = createEndedKeys(depthOf, onDropped);
  /** Their tombstones may be another replica's. */
  const claims = new DeferredQueue<SampledClaim>(onDropped);

  function selectClaims(): void {
    const { ids, atMs, retentionsS } = options.takeFirstClaims();
    for (const [index, id] of ids.entries()) {
      const shift = shifts.of(id);
      const depth = depthOf(id.key);
      if (shift === undefined || depth < shift) continue;
      const { tenantId, namespace, key } = id;
      const [claimedAtMs = 0, retentionS = 0] = [atMs[index], retentionsS[index]];
      const hash = hashes.ofKey(id, key);
      claims.add({ tenantId, namespace, hash, depth, atMs: claimedAtMs, retentionS, shift });
    }
  }

  async function turn(): Promise<void> {
    selectClaims();
    await shifts.store(ended, (batch) =>
      addTombstones(
        pool,
        batch.map((key) => ({ ...key, hash: hashes.ofKey(key, key.key) })),
      ),
    );
    await shifts.refresh();
    await claims.store((batch) => countLateRepeats(pool, batch));
  }

  return {
    // The last claims, too: no later turn looks them up.
    ...createRepeating({ intervalMs, work: turn, turnsAtStop: 2, onFailed }),
    /** Selects the keys that the sweep names. */
    seed,
    /** Whether a namespace has tombstones. */
    isSampled: (of: UsedNamespace): boolean => shifts.of(of) !== undefined,
    /** Takes the meter's first claims in sampled namespaces, and keeps those of sampled keys. */
    selectClaims,
    /** Takes the keys of records that the sweep deleted. */
    swept(byNamespace: readonly SweptNamespace[]): void {
      for (const { sampled, ...of } of byNamespace)
        if (sampled.length > 0) ended.add(of, shifts.of(of), sampled);
    },
  };
}
