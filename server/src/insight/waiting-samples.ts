import { type GrowingShapeCounts, noShapes, type ShapeCounts } from "./domain/key-quality.ts";
import { nameOf, type SampleId } from "./samples.ts";

/** A key of a sample that is not stored yet. Instants are milliseconds since the Unix epoch on the database's clock. */
export interface WaitingKey {
  readonly key: string;
  /** In a sample of fingerprints alone. */
  readonly fingerprint?: Uint8Array;
  readonly depth: number;
  readonly firstClaimedAtMs: number;
  /** In a sample of keys alone: when the record ended that the sweep deleted. */
  readonly endedAtMs?: number;
}

/** What is added to a namespace's sample. */
interface Addition extends SampleId {
  /** The sample may be no larger than one in 2^shift. */
  readonly shift: number;
  readonly keys: Iterable<WaitingKey>;
  readonly shapes?: ShapeCounts;
}

/** What waits of a namespace's sample. */
export interface WaitingSample extends SampleId {
  shift: number;
  readonly keys: Map<string, WaitingKey>;
  /** Of observed claims. */
  readonly shapes: GrowingShapeCounts;
}

/** Keys of one sample: a statement's. More of them halve the sample. */
const MAX_KEYS_OF_SAMPLE = 1000;
/** Some 10 MiB. It is reached if statements fail for long in many namespaces. */
const MAX_KEYS = 50_000;
/** Some 10 MiB, as `MAX_KEYS`. */
const MAX_SAMPLES = 50_000;

/**
 * Collects what belongs to samples until it is stored, in bounds: each key once, as it ended last. A namespace with very many
 * keys gets a smaller sample before anything is stored, so that a busy sweep, such as the first one of a namespace, costs no
 * more than a quiet one; counts stay numbers.
 *
 * @param onDropped is called with the number of keys that are dropped because too much waits.
 */
export function createWaitingSamples(onDropped: (count: number) => void) {
  const samples = new Map<string, WaitingSample>();
  let size = 0;

  function waitingOf({ tenantId, namespace, kind }: SampleId): WaitingSample | undefined {
    const name = nameOf({ tenantId, namespace, kind });
    const known = samples.get(name);
    if (known !== undefined || samples.size >= MAX_SAMPLES) return known;
    const added = { tenantId, namespace, kind, shift: 0, keys: new Map(), shapes: noShapes() };
    samples.set(name, added);
    return added;
  }

  function raiseShift(waiting: WaitingSample, shift: number): void {
    if (shift <= waiting.shift) return;
    waiting.shift = shift;
    for (const [key, { depth }] of waiting.keys) {
      if (depth < shift && waiting.keys.delete(key)) size--;
    }
  }

  function addKey(waiting: WaitingSample, added: WaitingKey): void {
    const { keys, shift } = waiting;
    if (added.depth < shift) return;
    const known = keys.get(added.key);
    if (known === undefined) {
      if (size >= MAX_KEYS) {
        onDropped(1);
        return;
      }
      size++;
    } else if ((known.endedAtMs ?? 0) >= (added.endedAtMs ?? 0)) return;
    keys.set(added.key, added);
    while (keys.size > MAX_KEYS_OF_SAMPLE) raiseShift(waiting, waiting.shift + 1);
  }

  function add({ shift, keys, shapes = noShapes(), ...id }: Addition): void {
    const waiting = waitingOf(id);
    if (waiting === undefined) {
      onDropped(Math.max(1, [...keys].length));
      return;
    }
    raiseShift(waiting, shift);
    for (const name of Object.keys(shapes) as (keyof ShapeCounts)[]) waiting.shapes[name] += shapes[name];
    for (const key of keys) addKey(waiting, key);
  }

  return {
    add,
    /** Removes and returns samples with together about `maxKeys` keys, and at most as many samples. */
    take(maxKeys: number): readonly WaitingSample[] {
      const taken: WaitingSample[] = [];
      let count = 0;
      for (const [name, waiting] of samples) {
        if (count >= maxKeys || taken.length === maxKeys) break;
        taken.push(waiting);
        count += waiting.keys.size;
        samples.delete(name);
      }
      size -= count;
      return taken;
    },
    /** Adds what could not be stored. */
    putBack(returned: readonly WaitingSample[]): void {
      for (const sample of returned) add({ ...sample, keys: sample.keys.values() });
    },
  };
}
