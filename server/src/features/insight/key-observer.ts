import { createRepeating } from "../../core/background/repeat.ts";
import type { UsedNamespace } from "../../core/claims/after-operation.ts";
import type { Pool } from "../../core/store/pool.ts";
import type { SweptNamespace } from "../../core/store/records/sweep-records.ts";
import { DeferredQueue } from "./deferred-queue.ts";
import { fingerprintDepth } from "./domain/depth.ts";
import type { KeyHashes } from "./domain/key-hashes.ts";
import { countShape, type GrowingShapeCounts, noShapes } from "./domain/key-quality.ts";
import { keyStem } from "./domain/key-shape.ts";
import type { ObservedClaim } from "./first-claims.ts";
import { createSampleShifts } from "./sample-shifts.ts";
import {
  addObservedKeys,
  limitKeySample,
  type ObservedNamespace,
  removeSampledKeys,
  type SampledKey,
} from "./store/key-samples.ts";
import { nameOf } from "./store/sample-limits.ts";

/** A claim of a sampled fingerprint that is not stored yet. */
export interface WaitingClaim extends ObservedClaim {
  readonly fingerprint: Uint8Array;
  readonly depth: number;
}

/** What was observed of a namespace and is not stored yet. */
export interface WaitingNamespace extends ObservedNamespace {
  shift: number;
  readonly shapes: GrowingShapeCounts;
  claims: WaitingClaim[];
}

/** Claims of one namespace: half a statement's. More of them halve the sample. */
const MAX_PER_NAMESPACE = 500;
/** Some 10 MiB. It is reached if statements fail for long in many namespaces. */
const MAX_CLAIMS = 50_000;
/** Some 10 MiB, as `MAX_CLAIMS`. */
const MAX_NAMESPACES = 50_000;

/**
 * Collects observed claims by namespace, in bounds: a namespace with very many gets a smaller sample before anything is
 * stored, and counts stay numbers.
 *
 * @param onDropped is called for each claim that is dropped because too much waits.
 */
export function createObservedKeys(onDropped: () => void) {
  const namespaces = new Map<string, WaitingNamespace>();
  let size = 0;

  function waitingOf({ tenantId, namespace }: UsedNamespace): WaitingNamespace | undefined {
    const name = nameOf({ tenantId, namespace });
    const known = namespaces.get(name);
    if (known !== undefined || namespaces.size >= MAX_NAMESPACES) return known;
    const added = { tenantId, namespace, shift: 0, shapes: noShapes(), claims: [] };
    namespaces.set(name, added);
    return added;
  }

  function raiseShift(waiting: WaitingNamespace, shift: number): void {
    waiting.shift = Math.max(waiting.shift, shift);
    const kept = waiting.claims.filter(({ depth }) => depth >= waiting.shift);
    size -= waiting.claims.length - kept.length;
    waiting.claims = kept;
  }

  function addClaim(waiting: WaitingNamespace, claim: WaitingClaim): void {
    if (claim.depth < waiting.shift) return;
    if (size >= MAX_CLAIMS) {
      onDropped();
      return;
    }
    waiting.claims.push(claim);
    size++;
    // One fingerprint may have all claims: then no shift selects fewer.
    for (let left = 32; waiting.claims.length > MAX_PER_NAMESPACE && left > 0; left--)
      raiseShift(waiting, waiting.shift + 1);
  }

  return {
    /** Adds a claim whose fingerprint is sampled by at least `shift`. */
    add(claim: ObservedClaim, shift: number): void {
      const { id, fingerprint, atMs } = claim;
      const waiting = waitingOf(id);
      if (waiting === undefined) {
        onDropped();
        return;
      }
      if (shift > waiting.shift) raiseShift(waiting, shift);
      countShape(waiting.shapes, id.key, atMs, fingerprint !== undefined);
      if (fingerprint !== undefined)
        addClaim(waiting, { ...claim, fingerprint, depth: fingerprintDepth(fingerprint) });
    },
    /** Removes and returns namespaces with together about `maxClaims` claims, and at most as many namespaces. */
    take(maxClaims: number): readonly WaitingNamespace[] {
      const taken: WaitingNamespace[] = [];
      let claims = 0;
      for (const [name, waiting] of namespaces) {
        if (claims >= maxClaims || taken.length === maxClaims) break;
        taken.push(waiting);
        claims += waiting.claims.length;
        size -= waiting.claims.length;
        namespaces.delete(name);
      }
      return taken;
    },
    /** Adds what could not be stored. */
    putBack(returned: readonly WaitingNamespace[]): void {
      for (const { shift, shapes, claims, ...of } of returned) {
        const waiting = waitingOf(of);
        if (waiting === undefined) {
          onDropped();
          continue;
        }
        for (const name of Object.keys(shapes) as (keyof GrowingShapeCounts)[])
          waiting.shapes[name] += shapes[name];
        raiseShift(waiting, shift);
        for (const claim of claims) addClaim(waiting, claim);
      }
    },
  };
}

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
  const forgotten = new DeferredQueue<UsedNamespace & Pick<SampledKey, "keyHash">>(onDropped);

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
