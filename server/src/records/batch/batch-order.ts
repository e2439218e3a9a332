import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { BatchRequestItem } from "../../gen/onceward/v1/idempotency_pb.ts";
import { MAX_CACHED_BYTES } from "../replay/replay-cache.ts";

/**
 * Items that are answered in one turn of the event loop, as indexes. Nearly every round is one chunk, so that its operations
 * share statements.
 */
export type Chunk = readonly number[];

/**
 * Divides a batch into rounds of chunks. All chunks of a round may be executed at once, each begun in its own turn of the event
 * loop; a round begins when the one before it has ended. Items on one record keep their order: they share a round, and then a
 * chunk, only if the store answers each of them as if it had arrived right after the one before it.
 */
export function roundsOf(items: readonly BatchRequestItem[]): readonly (readonly Chunk[])[] {
  const rounds: Round[] = [];
  /** The place of the last item so far on a record, by namespace and key. */
  const lastPlaces = new Map<string, Map<string, Place>>();
  items.forEach((item, index) => {
    const { namespace, key } = item.request.case === undefined ? UNNAMED : item.request.value;
    const ofNamespace = lastPlaces.get(namespace) ?? new Map<string, Place>();
    if (ofNamespace.size === 0) lastPlaces.set(namespace, ofNamespace);
    const previous = ofNamespace.get(key);
    const round = previous === undefined ? 0 : roundBehind(previous, items, item, rounds);
    rounds[round] ??= new Round();
    ofNamespace.set(key, { index, round, chunk: rounds[round].add(index, costOf(item)) });
  });
  return rounds.map(({ chunks }) => chunks);
}

const UNNAMED = { namespace: "", key: "" };

interface Place {
  readonly index: number;
  readonly round: number;
  readonly chunk: Chunk;
}

/** Returns the round of an item whose record's previous item has this place. */
function roundBehind(
  { index, round, chunk }: Place,
  items: readonly BatchRequestItem[],
  { request }: BatchRequestItem,
  rounds: readonly Round[],
): number {
  // Chunks are executed side by side: a later one could overtake the previous item.
  const sharesChunk = rounds[round]?.openChunk === chunk;
  return sharesChunk && canShareRound(items[index], request) ? round : round + 1;
}

/**
 * Consecutive claims can share a round, and so can consecutive lookups. But a claim that accepts ambiguity needs a second
 * statement where one that doesn't is answered by the first: later claims without it would be answered before it. So does a
 * claim after one whose key is too old, if it says that the key was created at another time.
 */
function canShareRound(previous: BatchRequestItem | undefined, next: BatchRequestItem["request"]): boolean {
  if (previous?.request.case === "claim" && next.case === "claim") {
    const { acceptAmbiguous, keyCreatedAt } = previous.request.value;
    return (
      acceptAmbiguous === next.value.acceptAmbiguous && isSameTime(keyCreatedAt, next.value.keyCreatedAt)
    );
  }
  return previous?.request.case === "lookup" && next.case === "lookup";
}

function isSameTime(one: Timestamp | undefined, other: Timestamp | undefined): boolean {
  return one?.seconds === other?.seconds && one?.nanos === other?.nanos;
}

/**
 * Bytes that one chunk costs at most: 256 items, as many as a statement holds, if each has or returns a cached result of the
 * maximum size. Copying and decoding so many bytes takes about 10 ms.
 */
const MAX_CHUNK_BYTES = 256 * MAX_CACHED_BYTES;
/** What an entry of metadata costs, in bytes that take the same time: it is checked, hashed and encoded. */
const BYTES_PER_ENTRY = 2048;

class Round {
  readonly chunks: number[][] = [];
  #bytesLeft = 0;

  /** The chunk that the next item joins, unless it is full; undefined: none. */
  get openChunk(): Chunk | undefined {
    return this.#bytesLeft > 0 ? this.chunks.at(-1) : undefined;
  }

  /** Adds an item, and returns its chunk. */
  add(index: number, bytes: number): Chunk {
    let chunk = this.chunks.at(-1);
    if (chunk === undefined || this.#bytesLeft <= 0) {
      chunk = [];
      this.chunks.push(chunk);
      this.#bytesLeft = MAX_CHUNK_BYTES;
    }
    chunk.push(index);
    this.#bytesLeft -= bytes;
    return chunk;
  }
}

/** Returns how many bytes of results an item makes the event loop handle at once: its own, or those of its answer. */
function costOf({ request }: BatchRequestItem): number {
  if (request.case === "claim" || request.case === "lookup") return MAX_CACHED_BYTES;
  if (request.case !== "complete" || request.value.result === undefined) return 0;
  const { payload, metadata } = request.value.result;
  let bytes = payload.byteLength;
  for (const name in metadata) bytes += BYTES_PER_ENTRY + name.length + (metadata[name]?.length ?? 0);
  return bytes;
}
