import { isDefinite, type NamespacePolicy, type Operation } from "./operation.ts";

/**
 * Returns a stand-in for each claim of unknown outcome, with the name of its kind. Such claims make a search
 * long: each may have been granted whenever the key was free. Claims that no answer distinguishes are
 * therefore made equal, so that the search tries only one of them.
 *
 * Claims of a kind have the same fingerprint, lease and retention. Their claim id is ignored unless some
 * call with that id was granted, and each counts as invoked with the first of them for its lease. Both only
 * allow more.
 */
export function standIns(
  operations: readonly Operation[],
  { onLeaseExpiry, reclaimWithinMs }: NamespacePolicy,
): ReadonlyMap<Operation, StandIn> {
  const mayHold = onLeaseExpiry === "HOLD" || reclaimWithinMs !== undefined;
  const granted = new Set(
    operations.flatMap(({ request, answer }) =>
      request.kind === "claim" && (answer.kind === "claimed" || answer.kind === "recorded") && request.claimId
        ? [request.claimId]
        : [],
    ),
  );
  const batches = new Set(
    operations.flatMap((operation) => (isDefinite(operation) ? [operation.batch?.id] : [])),
  );
  const comesAfterAnother = ({ batch }: Operation) => batch !== undefined && batches.has(batch.id);
  const found = new Map<Operation, StandIn>();
  const first = new Map<string, Operation>();
  for (const operation of operations.toSorted((a, b) => a.invokedAtMs - b.invokedAtMs)) {
    const { request, batch } = operation;
    if (request.kind !== "claim" || isDefinite(operation)) continue;
    const { claimId = "", waitMs: _, acceptAmbiguous = false, ...rest } = request;
    const alike = {
      ...rest,
      ...(granted.has(claimId) && { claimId }),
      ...(acceptAmbiguous && mayHold && { acceptAmbiguous }),
    };
    const kind = JSON.stringify([alike, comesAfterAnother(operation) && batch]);
    const { invokedAtMs } = first.getOrInsert(kind, operation);
    found.set(operation, { kind, operation: { ...operation, request: alike, invokedAtMs } });
  }
  return found;
}

/** @see standIns */
export interface StandIn {
  readonly kind: string;
  readonly operation: Operation;
}
