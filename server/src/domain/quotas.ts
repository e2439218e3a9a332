/** How much of the service a tenant may use; what is undefined is not limited. Explained in `policy.proto`. */
export interface Quotas {
  readonly operationsPerSecond: number | undefined;
  readonly burst: number | undefined;
  readonly concurrentCalls: number | undefined;
  readonly liveRecords: number | undefined;
  readonly storedBytes: number | undefined;
  /** Undefined: DEFAULT_DECLARED_NAMESPACES. */
  readonly declaredNamespaces: number | undefined;
  /** The tenant's share of the batcher against the others', 1-100. */
  readonly weight: number;
  /** Only count what would be refused. */
  readonly dryRun: boolean;
}

/** What a tenant may declare unless an operator says otherwise: each is part of a change of the whole tenant's retention. */
export const DEFAULT_DECLARED_NAMESPACES = 1000;
/** What an operator may let a tenant declare: a change of its retention is some megabytes then. */
export const MAX_DECLARED_NAMESPACES = 10_000;

/** Of a tenant that nobody limited. */
export const NO_QUOTAS: Quotas = {
  operationsPerSecond: undefined,
  burst: undefined,
  concurrentCalls: undefined,
  liveRecords: undefined,
  storedBytes: undefined,
  declaredNamespaces: undefined,
  weight: 1,
  dryRun: false,
};

/** What a tenant stores, as it was counted last. */
export interface StoredTotals {
  readonly records: number;
  readonly storedBytes: number;
}
