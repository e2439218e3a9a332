/** How much of the service a tenant may use; what is undefined is not limited. Explained in `policy.proto`. */
export interface Quotas {
  readonly operationsPerSecond: number | undefined;
  readonly burst: number | undefined;
  readonly concurrentCalls: number | undefined;
  readonly liveRecords: number | undefined;
  readonly storedBytes: number | undefined;
  /** The tenant's share of the batcher against the others', 1-100. */
  readonly weight: number;
  /** Only count what would be refused. */
  readonly dryRun: boolean;
}

/** Of a tenant that nobody limited. */
export const NO_QUOTAS: Quotas = {
  operationsPerSecond: undefined,
  burst: undefined,
  concurrentCalls: undefined,
  liveRecords: undefined,
  storedBytes: undefined,
  weight: 1,
  dryRun: false,
};

/** What a tenant stores, as it was counted last. */
export interface StoredTotals {
  readonly records: number;
  readonly storedBytes: number;
}
