import type { BatchRequestItem } from "../gen/onceward/v1/idempotency_pb.ts";

/**
 * Divides a batch into rounds, as indexes of its items. All items of a round may be executed at once; a round begins when the
 * one before it has ended. Items on one record keep their order: they share a round only if the store answers each of them as
 * if it had arrived right after the one before it.
 */
export function roundsOf(items: readonly BatchRequestItem[]): readonly (readonly number[])[] {
  const rounds: number[][] = [];
  const roundOf: number[] = [];
  /** The index of the last item so far on a record, by namespace and key. */
  const lastIndexes = new Map<string, Map<string, number>>();
  items.forEach(({ request }, index) => {
    const { namespace, key } = request.case === undefined ? UNNAMED : request.value;
    const ofNamespace = lastIndexes.get(namespace) ?? new Map<string, number>();
    if (ofNamespace.size === 0) lastIndexes.set(namespace, ofNamespace);
    const previous = ofNamespace.get(key);
    ofNamespace.set(key, index);
    const round =
      previous === undefined
        ? 0
        : (roundOf[previous] ?? 0) + (canShareRound(items[previous], request) ? 0 : 1);
    roundOf.push(round);
    const indexes = rounds[round];
    if (indexes === undefined) rounds.push([index]);
    else indexes.push(index);
  });
  return rounds;
}

const UNNAMED = { namespace: "", key: "" };

/**
 * Consecutive claims can share a round, and so can consecutive lookups. But a claim that accepts ambiguity needs a second
 * statement where one that doesn't is answered by the first: later claims without it would be answered before it.
 */
function canShareRound(previous: BatchRequestItem | undefined, next: BatchRequestItem["request"]): boolean {
  if (previous?.request.case === "claim" && next.case === "claim") {
    return previous.request.value.acceptAmbiguous === next.value.acceptAmbiguous;
  }
  return previous?.request.case === "lookup" && next.case === "lookup";
}

/**
 * Metadata entries that one chunk holds at most, but for its last item: they are checked, hashed and encoded in a few
 * milliseconds. Only batches of results with very much metadata have more.
 */
const MAX_ENTRIES_PER_CHUNK = 2048;

/** Divides a round into chunks, each of which holds the event loop for a short time; nearly every round is one chunk. */
export function chunksOf(
  items: readonly BatchRequestItem[],
  round: readonly number[],
): readonly (readonly number[])[] {
  const chunks: number[][] = [];
  let chunk: number[] = [];
  let entries = 0;
  for (const index of round) {
    entries += metadataEntries(items[index]);
    chunk.push(index);
    if (entries < MAX_ENTRIES_PER_CHUNK) continue;
    chunks.push(chunk);
    chunk = [];
    entries = 0;
  }
  return chunk.length === 0 ? chunks : [...chunks, chunk];
}

function metadataEntries(item: BatchRequestItem | undefined): number {
  if (item?.request.case !== "complete") return 0;
  let entries = 0;
  for (const _ in item.request.value.result?.metadata) entries++;
  return entries;
}
