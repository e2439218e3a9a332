import type { ClaimCommand, ClaimOutcome } from "../domain/record.ts";

/** What is counted of a claim's command. */
export type CountedClaim = Pick<ClaimCommand, "id" | "fingerprint" | "retentionInForceS">;

/** A namespace whose use is counted. */
export interface UsedNamespace {
  readonly tenantId: number;
  readonly namespace: string;
}

/** Receives what callers did, after each operation that was answered: the feature `usage` counts it. */
export interface OperationHooks {
  /** A Claim was answered at a time of the database's clock. */
  claimed(claim: CountedClaim, outcome: ClaimOutcome, atMs: number): void;
  /** A Claim was refused because the key is bound to another fingerprint. */
  mismatched(of: UsedNamespace): void;
  /** A record was completed, or an operation was refused because of a newer claim. */
  count(of: UsedNamespace, counter: "completions" | "fenced"): void;
}

/** Returns hooks that call those of several features, in their order. */
export function joinHooks(all: readonly Partial<OperationHooks>[]): OperationHooks {
  const claimed = all.filter((hooks) => hooks.claimed !== undefined);
  return {
    claimed(claim, outcome, atMs) {
      for (const hooks of claimed) hooks.claimed?.(claim, outcome, atMs);
    },
    mismatched(of) {
      for (const hooks of all) hooks.mismatched?.(of);
    },
    count(of, counter) {
      for (const hooks of all) hooks.count?.(of, counter);
    },
  };
}
