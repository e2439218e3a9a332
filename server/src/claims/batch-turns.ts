import type { BatchRequestItem } from "../gen/onceward/v1/idempotency_pb.ts";

/** Checked, hashed and encoded in a few milliseconds. Only batches of results with very much metadata have more. */
const MAX_ENTRIES_PER_TURN = 2048;

/** Cuts a round of a batch into parts, each of which holds the event loop for a short while; nearly every round is one. */
export function turnsOf(
  items: readonly BatchRequestItem[],
  places: readonly number[],
): readonly (readonly number[])[] {
  const turns: number[][] = [];
  let turn: number[] = [];
  let entries = 0;
  for (const place of places) {
    entries += metadataEntries(items[place]);
    turn.push(place);
    if (entries < MAX_ENTRIES_PER_TURN) continue;
    turns.push(turn);
    turn = [];
    entries = 0;
  }
  return turn.length === 0 ? turns : [...turns, turn];
}

function metadataEntries(item: BatchRequestItem | undefined): number {
  if (item?.request.case !== "complete") return 0;
  let entries = 0;
  for (const _ in item.request.value.result?.metadata) entries++;
  return entries;
}
