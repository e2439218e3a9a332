import type { BatchRequestItem } from "../gen/onceward/v1/idempotency_pb.ts";

/**
 * Cuts a batch into rounds, as places of its items: what is in one may be under way at once, and the next begins when it
 * has ended. Items on one record keep their order: they share a round only if the store answers each of them as if it had
 * come right after the one before it.
 */
export function roundsOf(items: readonly BatchRequestItem[]): readonly (readonly number[])[] {
  const rounds: number[][] = [];
  const roundOf: number[] = [];
  const previousPlaces = new Map<string, Map<string, number>>();
  items.forEach(({ request }, place) => {
    const { namespace, key } = request.case === undefined ? UNNAMED : request.value;
    const ofNamespace = previousPlaces.get(namespace) ?? new Map<string, number>();
    if (ofNamespace.size === 0) previousPlaces.set(namespace, ofNamespace);
    const previous = ofNamespace.get(key);
    ofNamespace.set(key, place);
    const round =
      previous === undefined ? 0 : (roundOf[previous] ?? 0) + (joins(items[previous], request) ? 0 : 1);
    roundOf.push(round);
    const places = rounds[round];
    if (places === undefined) rounds.push([place]);
    else places.push(place);
  });
  return rounds;
}

const UNNAMED = { namespace: "", key: "" };

/**
 * Claims in a row, or lookups in a row; but a claim that accepts ambiguity has to look again where one that doesn't has its
 * answer at once, and so would be overtaken by those that come after it.
 */
function joins(previous: BatchRequestItem | undefined, next: BatchRequestItem["request"]): boolean {
  if (previous?.request.case === "claim" && next.case === "claim") {
    return previous.request.value.acceptAmbiguous === next.value.acceptAmbiguous;
  }
  return previous?.request.case === "lookup" && next.case === "lookup";
}
