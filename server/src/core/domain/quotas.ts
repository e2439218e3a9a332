import type { FieldTable, Overrides } from "./fields.ts";

/**
 * How much of the service a tenant may use; an undefined quota does not limit. Explained in `policy.proto`.
 */
export interface Quotas {
  readonly operationsPerSecond: number | undefined;
  readonly burst: number | undefined;
  readonly concurrentCalls: number | undefined;
  readonly liveRecords: number | undefined;
  readonly storedBytes: number | undefined;
  /** Undefined: DEFAULT_DECLARED_NAMESPACES. */
  readonly declaredNamespaces: number | undefined;
  /** The tenant's share of the batcher relative to other tenants', 1-100. */
  readonly weight: number;
  /** Whether calls beyond a quota are counted and not refused. */
  readonly dryRun: boolean;
}

/**
 * How many namespaces a tenant may declare by default. Each is part of a change of the whole tenant's
 * retention.
 */
export const DEFAULT_DECLARED_NAMESPACES = 1000;
/** The highest quota of declared namespaces: a change of the tenant's retention is some megabytes then. */
export const MAX_DECLARED_NAMESPACES = 10_000;

const POSITIVE_INT32 = { min: 1, max: 2 ** 31 - 1 };
const POSITIVE_INTEGER = { min: 1, max: Number.MAX_SAFE_INTEGER };

/** The fields of quotas: their names in messages, their columns, their kinds and ranges. */
export const QUOTA_FIELDS = {
  operationsPerSecond: {
    proto: "operations_per_second",
    column: "quota_operations_per_second",
    kind: "integer",
    range: POSITIVE_INT32,
  },
  burst: { proto: "burst", column: "quota_burst", kind: "integer", range: POSITIVE_INT32 },
  concurrentCalls: {
    proto: "concurrent_calls",
    column: "quota_concurrent_calls",
    kind: "integer",
    range: POSITIVE_INT32,
  },
  liveRecords: {
    proto: "live_records",
    column: "quota_live_records",
    kind: "bigint",
    range: POSITIVE_INTEGER,
  },
  storedBytes: {
    proto: "stored_bytes",
    column: "quota_stored_bytes",
    kind: "bigint",
    range: POSITIVE_INTEGER,
  },
  weight: { proto: "weight", column: "weight", kind: "integer", range: { min: 1, max: 100 } },
  dryRun: { proto: "dry_run", column: "quota_dry_run", kind: "boolean" },
  declaredNamespaces: {
    proto: "declared_namespaces",
    column: "quota_declared_namespaces",
    kind: "integer",
    range: { min: 1, max: MAX_DECLARED_NAMESPACES },
  },
} as const satisfies FieldTable<Quotas>;

/** The quotas of a tenant for which the operator set none. */
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

/** Returns quotas with defaults for the unset ones. */
export function completeQuotas(set: Overrides<Quotas>): Quotas {
  return {
    ...NO_QUOTAS,
    ...set,
    weight: set.weight ?? NO_QUOTAS.weight,
    dryRun: set.dryRun ?? NO_QUOTAS.dryRun,
  };
}

/** The records that a tenant stores, as they were last counted. */
export interface StoredTotals {
  readonly records: number;
  readonly storedBytes: number;
}

/**
 * Maximum unfinished jobs of a tenant: more than people create while some run, and few enough to read at each
 * check.
 */
export const MAX_UNFINISHED_JOBS = 20;
